// /proc/self/smaps has an entry for each line of /proc/self/maps and no other, with the
// pages that were touched; smaps_rollup has their sum.
#include "verdict.h"
#include <sys/mman.h>

static unsigned long maps[4000];
static int count;

static void read_maps(void)
{
    FILE *file = fopen("/proc/self/maps", "r");
    CHECK(file);
    char text[1024];
    for (count = 0; count < 4000 && fgets(text, sizeof text, file);)
        CHECK(sscanf(text, "%lx-", &maps[count++]) == 1);
    fclose(file);
}

int main(void)
{
    enum { PAGES = 64, TOUCHED = 40 };
    char *memory = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < TOUCHED; i++) memory[i * 4096] = 1;
    read_maps();
    FILE *file = fopen("/proc/self/smaps", "r");
    CHECK(file);
    char text[1024];
    unsigned long start = 0, end = 0, kilobytes, whole = 0, resident = 0;
    int entries = 0, found = 0;
    while (fgets(text, sizeof text, file)) {
        CHECK(!strstr(text, "why-code"));
        if (sscanf(text, "%lx-%lx ", &start, &end) == 2) {
            CHECK(entries < count && start == maps[entries]);
            entries++;
        }
        int here = (unsigned long)memory >= start && (unsigned long)memory < end;
        if (sscanf(text, "Size: %lu kB", &kilobytes) == 1) {
            CHECK(kilobytes == (end - start) / 1024);
            whole += kilobytes;
        }
        if (sscanf(text, "Rss: %lu kB", &kilobytes) == 1) {
            resident += kilobytes;
            if (here) found = kilobytes >= TOUCHED * 4 && kilobytes <= (end - start) / 1024;
        }
    }
    fclose(file);
    CHECK(entries == count && found && resident < whole);
    file = fopen("/proc/self/smaps_rollup", "r");
    CHECK(file && fgets(text, sizeof text, file) && strstr(text, "[rollup]"));
    CHECK(fgets(text, sizeof text, file) && sscanf(text, "Rss: %lu kB", &kilobytes) == 1);
    CHECK(kilobytes > resident / 2 && kilobytes < resident * 2 + 1000);
    fclose(file);
    return verdict();
}
