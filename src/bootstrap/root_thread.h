// A root in a thread of this process.
#pragma once

#include <memory>
#include <thread>

#include "base/status.h"
#include "base/unique.h"
#include "bootstrap/lobby.h"
#include "bootstrap/root.h"

namespace talaria {

class OwnedRoot {
 public:
  static Result<std::unique_ptr<OwnedRoot>> start(UniqueFd listener, const Secret& secret,
                                                  const RootLimits& limits = {});
  ~OwnedRoot();  // stops the root and joins its thread
  OwnedRoot(const OwnedRoot&) = delete;
  OwnedRoot& operator=(const OwnedRoot&) = delete;

 private:
  OwnedRoot() = default;
  UniqueFd stop_;
  std::thread thread_;
};

// Runs a root in a detached thread, which ends with its rendezvous or with the process.
Status start_detached_root(UniqueFd listener, const Secret& secret);

}  // namespace talaria
