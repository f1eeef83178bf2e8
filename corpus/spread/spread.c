/* spread: summary figures of the numbers on the command line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 64

struct sample {
    double value[MOST];
    int count;
    int rejected;
};

struct summary {
    double low, high, mean, median, quartile[2];
    double spread;
};

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static int add(struct sample *s, const char *word)
{
    char *end;
    double v = strtod(word, &end);

    if (end == word || *end != '\0') {
        s->rejected++;
        return 0;
    }
    if (s->count == MOST)
        return 0;
    s->value[s->count++] = v;
    return 1;
}

static double middle(const double *v, int n)
{
    if (n % 2 == 1)
        return v[n / 2];
    return (v[n / 2] + v[n / 2 + 1]) / 2;
}

static double mean(const double *v, int n)
{
    double sum = 0;

    for (int i = 0; i < n; i++)
        sum += v[i];
    return sum / n;
}

static struct summary summarise(struct sample *s)
{
    struct summary r;
    int half = s->count / 2;

    qsort(s->value, s->count, sizeof s->value[0], by_size);
    r.low = s->value[0];
    r.high = s->value[s->count - 1];
    r.mean = mean(s->value, s->count);
    r.median = middle(s->value, s->count);
    if (half == 0) {
        r.quartile[0] = r.quartile[1] = r.median;
    } else {
        r.quartile[0] = s->value[half / 2];
        r.quartile[1] = s->value[s->count - 1 - half / 2];
    }
    r.spread = r.quartile[1] - r.quartile[0];
    return r;
}

static void show(const struct summary *r, int brief)
{
    if (brief) {
        printf("%.2f %.2f %.2f\n", r->low, r->median, r->high);
        return;
    }
    printf("low     %8.2f\n", r->low);
    printf("lower   %8.2f\n", r->quartile[0]);
    printf("median  %8.2f\n", r->median);
    printf("upper   %8.2f\n", r->quartile[1]);
    printf("high    %8.2f\n", r->high);
    printf("mean    %8.2f\n", r->mean);
    printf("spread  %8.2f\n", r->spread);
}

int main(int argc, char **argv)
{
    struct sample s = { .count = 0, .rejected = 0 };
    int brief = 0;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-b") == 0)
            brief = 1;
        else
            add(&s, argv[i]);
    }
    if (s.rejected > 0)
        printf("%d rejected\n", s.rejected);
    if (s.count == 0) {
        printf("nothing to sum up\n");
        return 1;
    }
    struct summary r = summarise(&s);

    printf("%d numbers\n", s.count);
    show(&r, brief);
    return 0;
}
