#include "runtime/reach.h"

#include <cstddef>
#include <cstring>

namespace talaria {
namespace {

// One rank's verdict: its result code, then a bit per rank.
class Verdicts {
 public:
  explicit Verdicts(uint32_t nranks) : stride_(sizeof(int32_t) + (nranks + 7) / 8), bytes_(stride_ * nranks) {}
  std::span<std::byte> bytes() { return bytes_; }
  void set_code(uint32_t rank, Code code) { std::memcpy(&bytes_[rank * stride_], &code, sizeof(code)); }
  Code code(uint32_t rank) const {
    Code code{};
    std::memcpy(&code, &bytes_[rank * stride_], sizeof(code));
    return code;
  }
  void set_opened(uint32_t rank, uint32_t peer) { byte(rank, peer) |= mask(peer); }
  bool opened(uint32_t rank, uint32_t peer) const {
    return (bytes_[rank * stride_ + sizeof(int32_t) + peer / 8] & mask(peer)) != std::byte{};
  }

 private:
  static_assert(sizeof(Code) == sizeof(int32_t));
  static std::byte mask(uint32_t peer) { return std::byte{1} << (peer % 8); }
  std::byte& byte(uint32_t rank, uint32_t peer) { return bytes_[rank * stride_ + sizeof(int32_t) + peer / 8]; }

  const size_t stride_;
  std::vector<std::byte> bytes_;
};

}  // namespace

Result<Reach> agree_on_reach(OutOfBand& oob, Status mine, const std::vector<bool>& opened) {
  const uint32_t nranks = oob.nranks();
  Verdicts verdicts(nranks);
  verdicts.set_code(oob.rank(), mine.code());
  for (uint32_t p = 0; p < nranks; ++p) {
    if (opened[p]) verdicts.set_opened(oob.rank(), p);
  }
  const Status told = oob.all_gather(verdicts.bytes());
  TRY(mine);
  TRY(told);
  Reach reach{std::vector<bool>(nranks), true};
  for (uint32_t r = 0; r < nranks; ++r) {
    if (verdicts.code(r) != Code::kSuccess) {
      return fail(Code::kRemote, "rank {} could not reach its peers; see its log", r);
    }
    reach.mapped[r] = verdicts.opened(oob.rank(), r) && verdicts.opened(r, oob.rank());
    for (uint32_t p = 0; p < nranks; ++p) reach.everyone &= verdicts.opened(r, p);
  }
  return reach;
}

}  // namespace talaria
