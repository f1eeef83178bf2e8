// /proc/self/maps shows the program its own mappings: its image by name, its
// stack, heap, an anonymous map and a mapped file, with their protections, sorted.
#include "verdict.h"
#include <fcntl.h>
#include <libgen.h>
#include <sys/mman.h>

struct line { unsigned long start, end; char protection[8], name[512]; };
static struct line lines[4000];
static int count;

static void read_maps(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    CHECK(maps);
    char text[1024];
    for (count = 0; fgets(text, sizeof text, maps); count++) {
        struct line *line = &lines[count];
        line->name[0] = 0;
        int fields = sscanf(text, "%lx-%lx %7s %*s %*s %*s %511[^\n]", &line->start, &line->end, line->protection, line->name);
        CHECK(fields >= 3);
        CHECK(count == 0 || line->start >= lines[count - 1].end);
    }
    fclose(maps);
}
static struct line *find(const void *address)
{
    for (int i = 0; i < count; i++)
        if ((unsigned long)address >= lines[i].start && (unsigned long)address < lines[i].end) return &lines[i];
    return NULL;
}

int main(int argc, char **argv)
{
    (void)argc;
    static int data = 1;
    int local;
    int file = open("mapped_here", O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(ftruncate(file, 4096) == 0);
    char *mapped = mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0);
    char *anonymous = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(anonymous + 4096, 4096, PROT_NONE);
    char *heap = sbrk(4096);
    CHECK(heap != (void *)-1);
    read_maps();
    struct line *line = find((void *)main);
    CHECK(line && strstr(line->name, basename(argv[0])) && line->protection[2] == 'x' && line->protection[1] == '-');
    line = find(&data);
    CHECK(line && line->protection[1] == 'w');
    line = find(&local);
    CHECK(line && !strcmp(line->name, "[stack]") && !strncmp(line->protection, "rw", 2));
    line = find(heap);
    CHECK(line && !strcmp(line->name, "[heap]"));
    line = find(mapped);
    CHECK(line && strstr(line->name, "/mapped_here") && !strcmp(line->protection, "r--s"));
    CHECK(find(anonymous) && !strcmp(find(anonymous)->protection, "rw-p"));
    CHECK(find(anonymous + 4096) && !strcmp(find(anonymous + 4096)->protection, "---p"));
    munmap(anonymous, 3 * 4096);
    return verdict();
}
