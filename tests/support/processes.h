// Ranks as processes: each is a fork of the test, ends with the value its function returns, and never runs the rest.
#pragma once

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <vector>

namespace talaria::test {

template <typename Function>
pid_t fork_rank(Function&& function) {
  fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) _exit(function());
  return child;
}

// The exit value of a child, or 128 + signal.
inline int wait_for_exit(pid_t child) {
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Runs function(rank) in n processes; the exit value of each.
template <typename Function>
std::vector<int> run_processes(int nranks, Function&& function) {
  std::vector<pid_t> children;
  for (int rank = 0; rank < nranks; ++rank) children.push_back(fork_rank([&] { return function(rank); }));
  std::vector<int> exits;
  for (pid_t child : children) exits.push_back(wait_for_exit(child));
  return exits;
}

}  // namespace talaria::test
