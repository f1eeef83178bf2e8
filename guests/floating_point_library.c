// Mathematical functions, conversion of numbers to text and back, with all bits shown.
#include "verdict.h"
#include <complex.h>
#include <math.h>

int main(void)
{
    double values[] = {0.1, 1.0, -2.5, 1e-10, 12345.678, 3.0e200};
    for (int i = 0; i < 6; i++) {
        double x = values[i];
        printf("%a %a %a %a %a\n", sin(x), exp(fmod(x, 50)), log(fabs(x)), pow(fabs(x), 0.3), atan2(x, 2));
        printf("%a %a %a %ld %a\n", tgamma(fmod(fabs(x), 20) + 0.5), erf(x), cbrt(x), lrint(fmod(x, 1e6)), hypot(x, 3));
    }
    double complex z = cexp(I * 1.0);
    printf("%a %a\n", creal(z), cimag(z));
    printf("%.17g %.0f %e %g %Lf\n", 0.1, 1e22, 1.0 / 3, 1e-5, 1.0L / 3);
    CHECK(strtod("0x1.8p3", NULL) == 12 && strtod("1e-320", NULL) > 0 && isnan(strtod("nan", NULL)));
    float sum = 0;
    for (int i = 1; i < 100000; i++) sum += 1.0f / (float)i;
    printf("%a\n", (double)sum);
    __int128 big = (__int128)1 << 100;
    printf("%lld %lld\n", (long long)(big % 1000000007), (long long)(big / 987654321987654321LL));
    return verdict();
}
