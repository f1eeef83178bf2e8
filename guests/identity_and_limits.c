// Who and where am I: ids, groups, session, priorities, affinity, uname, sysinfo.
#include "verdict.h"
#include <grp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>

// ADDR_NO_RANDOMIZE (0x40000) may be on, nothing else.
static int personality_is_default(void) { return (syscall(SYS_personality, 0xffffffff) & ~0x40000L) == 0; }

int main(void)
{
    CHECK(getpid() == (int)syscall(SYS_gettid) && getppid() >= 0 && getsid(0) >= 0 && getpgid(0) == getpgrp());
    uid_t r, e, s;
    CHECK(getresuid(&r, &e, &s) == 0 && r == getuid() && e == geteuid());
    CHECK(getgroups(0, NULL) >= 0);
    struct utsname name;
    CHECK(uname(&name) == 0 && !strcmp(name.sysname, "Linux") && !strcmp(name.machine, "x86_64"));
    struct sysinfo info;
    CHECK(sysinfo(&info) == 0 && info.totalram > 0);
    cpu_set_t set;
    CHECK(sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) >= 1);
    CHECK(sched_yield() == 0 && sched_getscheduler(0) >= 0);
    CHECK(sysconf(_SC_NPROCESSORS_ONLN) >= 1 && sysconf(_SC_PAGESIZE) == 4096);
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur > 65536);
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    CHECK(limit.rlim_cur > 0);
    CHECK(setpriority(PRIO_PROCESS, 0, 19) == 0 && getpriority(PRIO_PROCESS, 0) == 19);
    char named[16] = {0};
    CHECK(prctl(PR_SET_NAME, "another") == 0 && prctl(PR_GET_NAME, named) == 0 && !strcmp(named, "another"));
    CHECK(prctl(PR_GET_DUMPABLE) >= 0 && prctl(PR_SET_DUMPABLE, 1) == 0);
    CHECK(personality_is_default());
    return verdict();
}
