// A server's way to lose its rights: groups, user, capabilities, no new ones. Run as
// root it really loses them, else the calls fail; both ways the program goes on.
#include "verdict.h"
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static const char *word(int result) { return result == 0 ? "done" : strerror(errno); }

static void *in_thread(void *path)
{
    // The C library changes all threads, so this one has lost its rights too.
    printf("thread: uid %d, secret %s\n", getuid() != 0, word(open(path, O_RDONLY) < 0 ? -1 : 0));
    return NULL;
}

static pthread_barrier_t barrier;
static void *waits(void *path)
{
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return in_thread(path);
}

int main(void)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    int root = getuid() == 0;
    printf("root: %d\n", root);
    CHECK(umask(022) != 0777);
    int secret = open("secret", O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(write(secret, "secret", 6) == 6);
    chmod(".", 0777);
    int open_file = open("/proc/self/status", O_RDONLY);
    CHECK(open_file >= 0);
    pthread_t thread;
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&thread, NULL, waits, "secret");
    pthread_barrier_wait(&barrier);
    printf("keepcaps: %s\n", word(prctl(PR_SET_KEEPCAPS, 0)));
    printf("setgroups: %s\n", word(setgroups(0, NULL)));
    printf("setfsuid: %d\n", setfsuid(65534) >= 0 && setfsuid(getuid()) >= 0);
    printf("setgid: %s\n", word(setresgid(65534, 65534, 65534)));
    printf("seteuid: %s\n", word(seteuid(65534)));
    printf("back: %s\n", word(seteuid(getuid())));
    printf("setuid: %s\n", word(setresuid(65534, 65534, 65534)));
    printf("again: %s\n", word(setuid(0)));
    printf("ids: %d %d %d %d\n", getuid() == 65534, geteuid() == 65534, getgid() == 65534, getegid() == 65534);
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct none[2] = {{0}};
    printf("capset: %s\n", word((int)syscall(SYS_capset, &header, none)));
    struct __user_cap_data_struct have[2];
    CHECK(syscall(SYS_capget, &header, have) == 0);
    printf("capabilities: %x %x\n", have[0].effective, have[0].permitted);
    printf("no new privileges: %s\n", word(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)));
    CHECK(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
    // What is new to the recording must still be kept: files opened, maps made.
    printf("secret: %s\n", word(open("secret", O_RDONLY) < 0 ? -1 : 0));
    int file = open("/etc/hostname", O_RDONLY);
    if (file < 0) file = open("/etc/passwd", O_RDONLY);
    struct stat stat;
    CHECK(file >= 0 && fstat(file, &stat) == 0);
    char *map = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    CHECK(map != MAP_FAILED);
    int sum = 0;
    for (long i = 0; i < stat.st_size; i++) sum += map[i];
    printf("summed: %d\n", sum > 0);
    int own = open("own", O_RDWR | O_CREAT, 0600);
    if (own >= 0) {
        CHECK(ftruncate(own, 4096) == 0);
        char *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, own, 0);
        strcpy(shared, "shared");
        char back[7] = {0};
        CHECK(pread(own, back, 6, 0) == 6 && !strcmp(back, "shared"));
        unlink("own");
    }
    printf("own: %d\n", own >= 0);
    char *secrets = mmap(NULL, 4096, PROT_READ, MAP_SHARED, secret, 0);
    CHECK(secrets != MAP_FAILED && pwrite(secret, "S", 1, 0) == 1 && secrets[0] == 'S');
    DIR *folder = opendir("/proc/self/fd");
    CHECK(folder);
    closedir(folder);
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    prctl(PR_SET_DUMPABLE, 0);
    free(malloc(10000000));
    return verdict();
}
