#include "bootstrap/root_thread.h"

#include <sys/eventfd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/quiet_thread.h"

namespace talaria {
namespace {

Result<std::thread> start_root(UniqueFd listener, const Secret& secret, const RootLimits& limits, int stop) {
  auto root = std::make_shared<Root>(std::move(listener), secret, limits);
  return start_quiet_thread("talaria-root", [root, stop] { root->run(stop); });
}

}  // namespace

Result<std::unique_ptr<OwnedRoot>> OwnedRoot::start(UniqueFd listener, const Secret& secret,
                                                    const RootLimits& limits) {
  std::unique_ptr<OwnedRoot> owned(new OwnedRoot);
  owned->stop_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!owned->stop_.valid()) return fail(Code::kSystem, "Bootstrap: eventfd failed: {}", strerror(errno));
  owned->thread_ = TRY(start_root(std::move(listener), secret, limits, owned->stop_.get()));
  return owned;
}

OwnedRoot::~OwnedRoot() {
  if (!thread_.joinable()) return;
  eventfd_write(stop_.get(), 1);
  thread_.join();
}

Status start_detached_root(UniqueFd listener, const Secret& secret) {
  TRY(start_root(std::move(listener), secret, {}, -1)).detach();
  return Status();
}

}  // namespace talaria
