/* Averages the grades of each course in a file, and crashes on the bundled one.
 *
 * Each line of the file is an order:
 *     add COURSE GRADE     a grade was given
 *     drop COURSE GRADE    it was taken back
 *
 * The crash is a division by zero near the end. The fault is somewhere else. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct course {
    char name[16];
    int total;
    int count;
};

static struct course courses[8];
static int course_count;

static struct course *find(const char *name) {
    for (int i = 0; i < course_count; i++)
        if (strcmp(courses[i].name, name) == 0)
            return &courses[i];
    if (course_count == 8) {
        fputs("grades: too many courses\n", stderr);
        exit(1);
    }
    struct course *new = &courses[course_count++];
    snprintf(new->name, sizeof new->name, "%s", name);
    return new;
}

static void obey(const char *order, const char *name, int grade) {
    struct course *course = find(name);
    if (strcmp(order, "add") == 0) {
        course->total += grade;
        course->count++;
    } else if (strcmp(order, "drop") == 0) {
        course->total -= grade; /* even if no such grade was ever added */
        course->count--;
    }
}

int main(int argc, char **argv) {
    FILE *file = argc == 2 ? fopen(argv[1], "r") : NULL;
    if (!file) {
        fprintf(stderr, "usage: %s FILE\n", argv[0]);
        return 2;
    }
    char now[32], order[8], name[16];
    int grade;
    time_t seconds = time(NULL);
    strftime(now, sizeof now, "%H:%M:%S", localtime(&seconds));
    fprintf(stderr, "process %d at %s\n", getpid(), now);
    while (fscanf(file, "%7s %15s %d", order, name, &grade) == 3)
        obey(order, name, grade);
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 0; i < course_count; i++)
        printf("%-10s %d\n", courses[i].name, courses[i].total / courses[i].count);
}
