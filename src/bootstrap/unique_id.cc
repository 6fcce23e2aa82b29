#include "bootstrap/unique_id.h"

#include <unistd.h>

#include <cstring>
#include <utility>

#include "base/log.h"
#include "base/os.h"
#include "bootstrap/address.h"
#include "bootstrap/interfaces.h"
#include "bootstrap/port_range.h"
#include "bootstrap/root_thread.h"
#include "bootstrap/socket.h"

namespace talaria {
namespace {

UniqueId empty_id(uint32_t flags) {
  UniqueId id{};
  id.magic = UniqueId::kMagic;
  id.version = UniqueId::kVersion;
  id.flags = flags;
  return id;
}

// Every process that has the same text gets the same id, without talking to the others.
Result<UniqueId> id_from_text(const std::string& text) {
  UniqueId id = empty_id(UniqueId::kFromCommId | UniqueId::kOfRankZero);
  id.address = TRY(parse_endpoint(text));
  for (size_t i = 0; i < sizeof(id.secret); i += sizeof(uint64_t)) {
    const uint64_t word = text_hash(fmt::format("{}/{}", i, text));
    memcpy(id.secret + i, &word, sizeof(word));
  }
  return id;
}

// The id of a root to be, which takes over the listener.
Result<UniqueId> open_door(const Config& config, UniqueFd& listener) {
  const Interface chosen = TRY(choose_interface(list_interfaces(), config));
  listener = TRY(listen_at_free_port(chosen.address, config));
  UniqueId id = empty_id(0);
  id.address = local_address(listener.get());
  id.process = getpid();
  fill_random(std::as_writable_bytes(std::span(id.secret)));
  log_info(kLogBootstrap, "Bootstrap: Using {}:{}", chosen.name, to_text(id.address));
  return id;
}

}  // namespace

Result<UniqueId> create_unique_id(const Config& config) {
  if (!config.comm_id.empty()) return id_from_text(config.comm_id);
  UniqueFd listener;
  const UniqueId id = TRY(open_door(config, listener));
  TRY(start_detached_root(std::move(listener), Secret(id)));
  return id;
}

Result<UniqueId> create_unique_id(const Config& config, std::unique_ptr<OwnedRoot>* root) {
  UniqueFd listener;
  const UniqueId id = TRY(open_door(config, listener));
  *root = TRY(OwnedRoot::start(std::move(listener), Secret(id)));
  return id;
}

}  // namespace talaria
