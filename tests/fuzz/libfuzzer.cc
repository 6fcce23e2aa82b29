// The fuzz targets under libFuzzer: the first byte of an input chooses the target. Built with clang and
// -DTALARIA_FUZZER=ON only.
#include <cstddef>
#include <cstdint>

#include "fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace talaria::test;
  if (size == 0) return 0;
  const size_t texts = text_targets().size(), all = texts + socket_targets().size();
  const size_t choice = data[0] % all;
  const FuzzTarget& target = choice < texts ? text_targets()[choice] : socket_targets()[choice - texts];
  target.run({data + 1, size - 1});
  return 0;
}
