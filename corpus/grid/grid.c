/* grid: draws rectangles of characters into a picture.
 *
 *   grid WIDTH HEIGHT [x,y,w,h,c]...
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct picture {
    int width, height;
    char *cells;
};

struct legend {
    char sign;
    int count;
    int area;
};

#define SIGNS 16

struct job {
    struct picture picture;
    struct legend *legend;
    int signs;
};

static void clear(struct picture *p)
{
    for (int y = 0; y < p->height; y++)
        for (int x = 0; x < p->width; x++)
            p->cells[y * p->width + x] = '.';
}

static int open_job(struct job *job, int width, int height)
{
    job->picture.width = width;
    job->picture.height = height;
    job->picture.cells = malloc((size_t)width * height);
    job->legend = calloc(SIGNS, sizeof *job->legend);
    job->signs = 0;
    if (job->picture.cells == NULL || job->legend == NULL)
        return 0;
    clear(&job->picture);
    return 1;
}

static struct legend *legend_of(struct job *job, char sign)
{
    for (int i = 0; i < job->signs; i++)
        if (job->legend[i].sign == sign)
            return &job->legend[i];
    if (job->signs == SIGNS)
        return NULL;
    job->legend[job->signs].sign = sign;
    return &job->legend[job->signs++];
}

static void fill(struct picture *p, int x0, int y0, int w, int h, char sign)
{
    int x1 = x0 + w, y1 = y0 + h;

    if (x0 < 0)
        x0 = 0;
    if (y0 < 0)
        y0 = 0;
    if (x1 > p->width)
        x1 = p->width;
    for (int y = y0; y < y1; y++)
        for (int x = x0; x < x1; x++)
            p->cells[y * p->width + x] = sign;
}

static int draw(struct job *job, const char *word)
{
    int x, y, w, h;
    char sign;
    struct legend *legend;

    if (sscanf(word, "%d,%d,%d,%d,%c", &x, &y, &w, &h, &sign) != 5)
        return 0;
    if (w < 1 || h < 1 || (legend = legend_of(job, sign)) == NULL)
        return 0;
    fill(&job->picture, x, y, w, h, sign);
    legend->count++;
    legend->area += w * h;
    return 1;
}

static void show(const struct job *job)
{
    const struct picture *p = &job->picture;

    for (int y = 0; y < p->height; y++)
        printf("%.*s\n", p->width, p->cells + y * p->width);
    for (int i = 0; i < job->signs; i++) {
        const struct legend *l = &job->legend[i];

        printf("%c %d of area %d\n", l->sign, l->count, l->area);
    }
}

int main(int argc, char **argv)
{
    struct job job;
    int width = argc > 2 ? atoi(argv[1]) : 0;
    int height = argc > 2 ? atoi(argv[2]) : 0;

    if (width < 1 || height < 1 || width > 200 || height > 200) {
        printf("usage: grid WIDTH HEIGHT [x,y,w,h,c]...\n");
        return 2;
    }
    if (!open_job(&job, width, height))
        return 3;
    for (int i = 3; i < argc; i++) {
        if (!draw(&job, argv[i])) {
            printf("cannot draw %s\n", argv[i]);
            return 1;
        }
    }
    show(&job);
    free(job.picture.cells);
    free(job.legend);
    return 0;
}
