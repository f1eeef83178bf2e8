// dlopen, dlsym, dladdr, dlclose of a library given by path; errors for missing
// ones; the same library again after unloading.
#include "verdict.h"
#include <dlfcn.h>

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    for (int i = 0; i < 3; i++) {
        void *library = dlopen(argv[1], i == 1 ? RTLD_LAZY : RTLD_NOW);
        CHECK(library);
        int (*call)(int) = (int (*)(int))dlsym(library, "plugin_call");
        int *value = dlsym(library, "plugin_value");
        CHECK(call && value && *value == 77);
        *value = 78;
        printf("%d %d\n", call(5), call(5));
        Dl_info info;
        CHECK(dladdr((void *)call, &info) && !strcmp(info.dli_sname, "plugin_call"));
        CHECK(dlsym(library, "missing") == NULL && dlerror());
        CHECK(dlclose(library) == 0);
    }
    CHECK(dlopen("./missing.so", RTLD_NOW) == NULL && strstr(dlerror(), "missing.so"));
    void *math = dlopen("libm.so.6", RTLD_NOW);
    CHECK(math);
    double (*cosine)(double) = (double (*)(double))dlsym(math, "cos");
    printf("%.12f\n", cosine(1.0));
    return verdict();
}
