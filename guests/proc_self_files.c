// What /proc says of the program is the program's own: auxiliary vector, signals,
// addresses, memory; by every name of its folder, also relative to it.
#include "verdict.h"
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

int main(int, char **, char **);
static char text[1 << 20];

static ssize_t slurp_at(int folder, const char *path)
{
    int file = openat(folder, path, O_RDONLY);
    CHECK(file >= 0);
    ssize_t all = 0, n;
    while ((n = read(file, text + all, sizeof text - 1 - (size_t)all)) > 0) all += n;
    text[all] = 0;
    close(file);
    return all;
}

static void auxiliary_vector(void)
{
    ssize_t n = slurp_at(AT_FDCWD, "/proc/self/auxv");
    CHECK(n >= 160 && n % 16 == 0);
    const Elf64_auxv_t *entry = (void *)text;
    int seen = 0;
    for (; entry->a_type != AT_NULL; entry++) {
        seen++;
        // The C library has its own idea of these.
        if (entry->a_type == AT_HWCAP || entry->a_type == AT_HWCAP2) continue;
        CHECK(getauxval(entry->a_type) == entry->a_un.a_val);
    }
    CHECK(seen > 10);
    puts("auxv");
}

static void handler(int number) { (void)number; }

static unsigned long line(const char *name)
{
    char *at = strstr(text, name);
    CHECK(at);
    return strtoul(at + strlen(name), NULL, 16);
}

static void signals_in_status(void)
{
    signal(SIGUSR1, handler);
    signal(SIGUSR2, SIG_IGN);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    slurp_at(AT_FDCWD, "/proc/self/status");
    printf("blocked %lx ignored %lx\n", line("SigBlk:"), line("SigIgn:") & (1ul << (SIGUSR2 - 1)));
    printf("caught %lx\n", line("SigCgt:") & 0x7fffffff);
    CHECK(strstr(text, "\nThreads:\t1\n"));
}

static unsigned long field(int number)
{
    char *at = strrchr(text, ')') + 2;
    for (int n = 3; n < number; n++) at = strchr(at, ' ') + 1;
    return strtoul(at, NULL, 10);
}

static void addresses_in_stat(char **argv, char **envp)
{
    slurp_at(AT_FDCWD, "/proc/self/stat");
    unsigned long here = (unsigned long)__builtin_frame_address(0), stack = field(28);
    CHECK(stack > here && stack - here < 1 << 20);
    CHECK(field(26) <= (unsigned long)main && (unsigned long)main < field(27));
    CHECK(field(48) == (unsigned long)argv[0] && field(50) == (unsigned long)envp[0]);
    CHECK(field(49) <= field(50) && field(51) > field(50) && field(20) == 1);
    puts("stat");
}

static void *in_thread(void *folder)
{
    char path[64];
    // By thread, by process and thread, by both.
    const char *names[] = {"/proc/thread-self/", "/proc/self/task/%2$d/", "/proc/%1$d/task/%2$d/", "/proc/%1$d/"};
    for (int i = 0; i < 4; i++) {
        int n = snprintf(path, sizeof path, names[i], getpid(), (int)syscall(SYS_gettid));
        strcpy(path + n, "maps");
        CHECK(slurp_at(AT_FDCWD, path) > 100 && strstr(text, "[stack]") && !strstr(text, "/why\n"));
        strcpy(path + n, "cmdline");
        CHECK(slurp_at(AT_FDCWD, path) > 0 && strstr(text, "proc_self_files"));
        strcpy(path + n, "exe");
        struct stat by_link, own;
        char target[512] = {0};
        CHECK(readlink(path, target, sizeof target - 1) > 0 && strstr(target, "proc_self_files"));
        CHECK(stat(path, &by_link) == 0 && stat(target, &own) == 0);
        CHECK(by_link.st_ino == own.st_ino && by_link.st_size == own.st_size);
    }
    // Relative to an open folder.
    CHECK(slurp_at(*(int *)folder, "maps") > 100 && strstr(text, "[stack]") && !strstr(text, "/why\n"));
    slurp_at(*(int *)folder, "status");
    CHECK(strstr(text, "\nThreads:\t2\n"));
    return NULL;
}

static void memory_by_file(void)
{
    static volatile int there = 12345;
    int file = open("/proc/self/mem", O_RDONLY), value = 0;
    CHECK(file >= 0 && pread(file, &value, sizeof value, (off_t)(intptr_t)&there) == sizeof value && value == 12345);
    close(file);
    CHECK(access("/proc/self/exe", X_OK) == 0);
    char *map = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char wanted[64];
    CHECK(mprotect(map + 4096, 4096, PROT_NONE) == 0);
    slurp_at(AT_FDCWD, "/proc/self/maps");
    sprintf(wanted, "%lx-%lx ---p", (long)map + 4096, (long)map + 8192);
    CHECK(strstr(text, wanted));
    puts("memory");
}

int main(int argc, char **argv, char **envp)
{
    (void)argc;
    auxiliary_vector();
    signals_in_status();
    addresses_in_stat(argv, envp);
    int folder = open("/proc/self", O_RDONLY | O_DIRECTORY);
    CHECK(folder >= 0);
    pthread_t thread;
    pthread_create(&thread, NULL, in_thread, &folder);
    pthread_join(thread, NULL);
    memory_by_file();
    return verdict();
}
