// Runs a program as a container may run it: hostile_launch [--refuse-peeking] [--unprivileged] PROGRAM [ARGUMENTS].
//
// --refuse-peeking: process_vm_readv, process_vm_writev, pidfd_getfd and ptrace fail with EPERM (a seccomp filter).
// --unprivileged: as user and group 65534 if started by root. Exits with 77, which means skipped, where the system
// does not allow such a thing or that user cannot read the program.
#include <errno.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <vector>

namespace {

constexpr int kSkipped = 77;
constexpr unsigned kNobody = 65534;

bool refuse_peeking() {
  constexpr unsigned kRefused[] = {SYS_process_vm_readv, SYS_process_vm_writev, SYS_pidfd_getfd, SYS_ptrace};
  std::vector<sock_filter> filter{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const unsigned number : kRefused) {
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) return false;
  // Seen to work, on this very process.
  char from = 1, to = 0;
  iovec source{&from, 1}, sink{&to, 1};
  return process_vm_readv(getpid(), &sink, 1, &source, 1, 0) == -1 && errno == EPERM;
}

bool drop_privileges() {
  if (geteuid() != 0) return true;
  return setgroups(0, nullptr) == 0 && setgid(kNobody) == 0 && setuid(kNobody) == 0;
}

}  // namespace

int main(int count, char** arguments) {
  int next = 1;
  for (; next < count && strncmp(arguments[next], "--", 2) == 0; ++next) {
    const bool peeking = strcmp(arguments[next], "--refuse-peeking") == 0;
    if (peeking ? refuse_peeking() : strcmp(arguments[next], "--unprivileged") == 0 && drop_privileges()) continue;
    printf("skipped: %s is not possible here: %s\n", arguments[next], strerror(errno));
    return kSkipped;
  }
  if (next == count) return 2;
  if (access(arguments[next], R_OK | X_OK) != 0) {
    printf("skipped: user %u cannot run %s: %s\n", getuid(), arguments[next], strerror(errno));
    return kSkipped;
  }
  execv(arguments[next], arguments + next);
  perror(arguments[next]);
  return 1;
}
