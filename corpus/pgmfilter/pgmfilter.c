/* pgmfilter: applies a chain of filters to a plain PGM image (P2).
 *
 * usage: pgmfilter FILTER... < IN.pgm > OUT.pgm
 *
 * Filters: invert, threshold=N, blur, sharpen, edges, median, flip, turn, scale=N, crop=X,Y,W,H,
 *          stretch, border=N, histogram (prints counts instead of the image) */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct image {
    int width;
    int height;
    int maximum;
    int *pixels;
};

static void die(const char *message) {
    fprintf(stderr, "pgmfilter: %s\n", message);
    exit(2);
}

static struct image new_image(int width, int height, int maximum) {
    struct image image = {width, height, maximum, NULL};
    if (width <= 0 || height <= 0 || (long)width * height > 1 << 20)
        die("bad size");
    image.pixels = calloc((size_t)width * height, sizeof *image.pixels);
    if (!image.pixels)
        die("out of memory");
    return image;
}

static int *pixel(const struct image *image, int x, int y) {
    return &image->pixels[y * image->width + x];
}

/* Outside the image the nearest border pixel counts. */
static int clamped(const struct image *image, int x, int y) {
    if (x < 0)
        x = 0;
    if (x >= image->width)
        x = image->width - 1;
    if (y < 0)
        y = 0;
    if (y >= image->height)
        y = image->height - 1;
    return *pixel(image, x, y);
}

static int limit(int value, int maximum) {
    if (value < 0)
        return 0;
    return value > maximum ? maximum : value;
}

/* ---- reading and writing ---- */

static int next_number(FILE *file) {
    int c, value = 0;
    while ((c = getc(file)) != EOF && !isdigit(c))
        if (c == '#')
            while ((c = getc(file)) != EOF && c != '\n')
                ;
    if (c == EOF)
        die("the image ends too early");
    while (c != EOF && isdigit(c)) {
        value = value * 10 + (c - '0');
        c = getc(file);
    }
    return value;
}

static struct image read_image(FILE *file) {
    if (getc(file) != 'P' || getc(file) != '2')
        die("not a plain PGM image");
    int width = next_number(file);
    int height = next_number(file);
    int maximum = next_number(file);
    if (maximum < 1 || maximum > 65535)
        die("bad maximum");
    struct image image = new_image(width, height, maximum);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            *pixel(&image, x, y) = limit(next_number(file), maximum);
    return image;
}

static void write_image(const struct image *image) {
    printf("P2\n%d %d\n%d\n", image->width, image->height, image->maximum);
    for (int y = 0; y < image->height; y++)
        for (int x = 0; x < image->width; x++)
            printf("%d%c", *pixel(image, x, y), x == image->width - 1 ? '\n' : ' ');
}

/* ---- point filters ---- */

static void invert(struct image *image) {
    for (int i = 0; i < image->width * image->height; i++)
        image->pixels[i] = image->maximum - image->pixels[i];
}

static void threshold(struct image *image, int level) {
    for (int i = 0; i < image->width * image->height; i++)
        image->pixels[i] = image->pixels[i] >= level ? image->maximum : 0;
}

/* Spreads the values so that the darkest becomes 0 and the brightest the maximum. */
static void stretch(struct image *image) {
    int low = image->maximum, high = 0, count = image->width * image->height;
    for (int i = 0; i < count; i++) {
        if (image->pixels[i] < low)
            low = image->pixels[i];
        if (image->pixels[i] > high)
            high = image->pixels[i];
    }
    if (high == low)
        return;
    for (int i = 0; i < count; i++)
        image->pixels[i] = (image->pixels[i] - low) * image->maximum / (high - low);
}

/* ---- neighbourhood filters ---- */

struct kernel {
    int weights[3][3];
    int divisor;
};

static const struct kernel blur_kernel = {{{1, 2, 1}, {2, 4, 2}, {1, 2, 1}}, 16};
static const struct kernel sharpen_kernel = {{{0, -1, 0}, {-1, 4, -1}, {0, -1, 0}}, 1};

static struct image convolve(const struct image *image, const struct kernel *kernel) {
    struct image result = new_image(image->width, image->height, image->maximum);
    for (int y = 0; y < image->height; y++) {
        for (int x = 0; x < image->width; x++) {
            int sum = 0;
            for (int dy = -1; dy <= 1; dy++)
                for (int dx = -1; dx <= 1; dx++)
                    sum += kernel->weights[dy + 1][dx + 1] * clamped(image, x + dx, y + dy);
            *pixel(&result, x, y) = limit(sum / kernel->divisor, image->maximum);
        }
    }
    return result;
}

static struct image edges(const struct image *image) {
    struct image result = new_image(image->width, image->height, image->maximum);
    for (int y = 0; y < image->height; y++) {
        for (int x = 0; x < image->width; x++) {
            int across = 0, down = 0;
            for (int k = -1; k <= 1; k++) {
                int weight = k == 0 ? 2 : 1;
                across += weight * (clamped(image, x + 1, y + k) - clamped(image, x - 1, y + k));
                down += weight * (clamped(image, x + k, y + 1) - clamped(image, x + k, y - 1));
            }
            *pixel(&result, x, y) = limit(abs(across) + abs(down), image->maximum);
        }
    }
    return result;
}

static int compare_ints(const void *a, const void *b) {
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

static struct image median(const struct image *image) {
    struct image result = new_image(image->width, image->height, image->maximum);
    for (int y = 0; y < image->height; y++) {
        for (int x = 0; x < image->width; x++) {
            int values[9], count = 0;
            for (int dy = -1; dy <= 1; dy++)
                for (int dx = -1; dx <= 1; dx++)
                    values[count++] = clamped(image, x + dx, y + dy);
            qsort(values, 9, sizeof values[0], compare_ints);
            *pixel(&result, x, y) = values[4];
        }
    }
    return result;
}

/* ---- geometry ---- */

static struct image flip(const struct image *image) {
    struct image result = new_image(image->width, image->height, image->maximum);
    for (int y = 0; y < image->height; y++)
        for (int x = 0; x < image->width; x++)
            *pixel(&result, image->width - 1 - x, y) = *pixel(image, x, y);
    return result;
}

/* A quarter turn clockwise. */
static struct image turn(const struct image *image) {
    struct image result = new_image(image->height, image->width, image->maximum);
    for (int y = 0; y < image->height; y++)
        for (int x = 0; x < image->width; x++)
            *pixel(&result, image->height - 1 - y, x) = *pixel(image, x, y);
    return result;
}

static struct image scale(const struct image *image, int factor) {
    if (factor < 1 || factor > 16)
        die("bad factor");
    struct image result =
        new_image(image->width * factor, image->height * factor, image->maximum);
    for (int y = 0; y < result.height; y++)
        for (int x = 0; x < result.width; x++)
            *pixel(&result, x, y) = *pixel(image, x / factor, y / factor);
    return result;
}

static struct image crop(const struct image *image, int left, int top, int width, int height) {
    if (left < 0 || top < 0 || width < 1 || height < 1 || left + width > image->width ||
        top + height > image->height)
        die("the crop is outside the image");
    struct image result = new_image(width, height, image->maximum);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            *pixel(&result, x, y) = *pixel(image, left + x, top + y);
    return result;
}

static struct image border(const struct image *image, int size) {
    if (size < 0 || size > 100)
        die("bad border");
    struct image result =
        new_image(image->width + 2 * size, image->height + 2 * size, image->maximum);
    for (int y = 0; y < result.height; y++)
        for (int x = 0; x < result.width; x++)
            *pixel(&result, x, y) = clamped(image, x - size, y - size);
    return result;
}

static void histogram(const struct image *image) {
    int counts[8] = {0};
    for (int i = 0; i < image->width * image->height; i++)
        counts[image->pixels[i] * 8 / (image->maximum + 1)]++;
    for (int bin = 0; bin < 8; bin++) {
        printf("%d %4d ", bin, counts[bin]);
        for (int k = 0; k < counts[bin] * 40 / (image->width * image->height); k++)
            putchar('*');
        putchar('\n');
    }
}

/* ---- the chain ---- */

static void replace(struct image *image, struct image fresh) {
    free(image->pixels);
    *image = fresh;
}

/* Applies one filter; returns whether an image is still wanted at the end. */
static int apply(struct image *image, const char *filter) {
    int a, b, c, d;
    if (strcmp(filter, "invert") == 0)
        invert(image);
    else if (sscanf(filter, "threshold=%d", &a) == 1)
        threshold(image, a);
    else if (strcmp(filter, "stretch") == 0)
        stretch(image);
    else if (strcmp(filter, "blur") == 0)
        replace(image, convolve(image, &blur_kernel));
    else if (strcmp(filter, "sharpen") == 0)
        replace(image, convolve(image, &sharpen_kernel));
    else if (strcmp(filter, "edges") == 0)
        replace(image, edges(image));
    else if (strcmp(filter, "median") == 0)
        replace(image, median(image));
    else if (strcmp(filter, "flip") == 0)
        replace(image, flip(image));
    else if (strcmp(filter, "turn") == 0)
        replace(image, turn(image));
    else if (sscanf(filter, "scale=%d", &a) == 1)
        replace(image, scale(image, a));
    else if (sscanf(filter, "crop=%d,%d,%d,%d", &a, &b, &c, &d) == 4)
        replace(image, crop(image, a, b, c, d));
    else if (sscanf(filter, "border=%d", &a) == 1)
        replace(image, border(image, a));
    else if (strcmp(filter, "histogram") == 0) {
        histogram(image);
        return 0;
    } else {
        die("no such filter");
    }
    return 1;
}

int main(int argc, char **argv) {
    struct image image = read_image(stdin);
    int wanted = 1;
    for (int i = 1; i < argc; i++)
        wanted = apply(&image, argv[i]);
    if (wanted)
        write_image(&image);
    free(image.pixels);
    return 0;
}
