// Becomes its arguments under a system call filter like that of a container
// (in essence Docker's default profile for a process without capabilities).
//
// Denied with EPERM: what could reach the host. clone3 with ENOSYS, so that C
// libraries fall back to clone, whose flags a filter can see.
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static const int denied[] = {
    SYS_acct, SYS_add_key, SYS_bpf, SYS_clock_adjtime, SYS_clock_settime, SYS_create_module, SYS_delete_module,
    SYS_finit_module, SYS_fsconfig, SYS_fsmount, SYS_fsopen, SYS_fspick, SYS_get_kernel_syms, SYS_get_mempolicy,
    SYS_init_module, SYS_io_uring_enter, SYS_io_uring_register, SYS_io_uring_setup, SYS_ioperm, SYS_iopl, SYS_kcmp,
    SYS_kexec_file_load, SYS_kexec_load, SYS_keyctl, SYS_lookup_dcookie, SYS_mbind, SYS_mount, SYS_move_mount,
    SYS_move_pages, SYS_nfsservctl, SYS_open_by_handle_at, SYS_open_tree, SYS_perf_event_open, SYS_pivot_root,
    SYS_process_madvise, SYS_query_module, SYS_quotactl, SYS_reboot, SYS_request_key, SYS_set_mempolicy,
    SYS_setdomainname, SYS_sethostname, SYS_setns, SYS_settimeofday, SYS_swapoff, SYS_swapon, SYS__sysctl, SYS_sysfs,
    SYS_syslog, SYS_umount2, SYS_unshare, SYS_uselib, SYS_userfaultfd, SYS_ustat, SYS_vhangup,
};
// personality(2) values that change nothing of consequence.
static const unsigned personalities[] = {0x0, 0x8, 0x20000, 0x20008, 0xffffffff};
// Namespaces, as flags of clone.
static const unsigned namespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
                                   CLONE_NEWPID | CLONE_NEWNET;

static struct sock_filter filter[512];
static unsigned short length;

static void add(struct sock_filter instruction) { filter[length++] = instruction; }
static void load(unsigned offset) { add((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset)); }
static void load_number(void) { load(offsetof(struct seccomp_data, nr)); }
static void load_argument(int n) { load((unsigned)(offsetof(struct seccomp_data, args) + (unsigned)n * 8)); }
static void end(unsigned action) { add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action)); }
static void fail(int error) { end(SECCOMP_RET_ERRNO | (unsigned)error); }
// Runs the next `skipped` instructions only when the loaded word equals `value`.
static void only_if(unsigned value, unsigned char skipped) { add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skipped)); }

static void build(void)
{
    load(offsetof(struct seccomp_data, arch));
    add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0));
    fail(EPERM);
    load_number();
    for (unsigned i = 0; i < sizeof denied / sizeof *denied; i++) {
        only_if((unsigned)denied[i], 1);
        fail(EPERM);
    }
    only_if(SYS_clone3, 1);
    fail(ENOSYS);
    only_if(SYS_clone, 4);
    load_argument(0);
    add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, namespaces, 0, 1));
    fail(EPERM);
    end(SECCOMP_RET_ALLOW);
    const unsigned char known = sizeof personalities / sizeof *personalities;
    only_if(SYS_personality, (unsigned char)(2 * known + 2));
    load_argument(0);
    for (unsigned i = 0; i < known; i++) {
        only_if(personalities[i], 1);
        end(SECCOMP_RET_ALLOW);
    }
    fail(EPERM);
    only_if(SYS_socket, 4); // no vsock: it reaches the hypervisor
    load_argument(0);
    only_if(AF_VSOCK, 1);
    fail(EPERM);
    end(SECCOMP_RET_ALLOW);
    end(SECCOMP_RET_ALLOW);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: %s PROGRAM ARGUMENTS...\n", argv[0]);
        return 125;
    }
    build();
    struct sock_fprog program = {.len = length, .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        fprintf(stderr, "%s: cannot install the filter: %s\n", argv[0], strerror(errno));
        return 125;
    }
    execvp(argv[1], argv + 1);
    fprintf(stderr, "%s: cannot run %s: %s\n", argv[0], argv[1], strerror(errno));
    return 127;
}
