// A driver that lacks newer entry points: those with a substitute are not missed, the others are named.
#include <gtest/gtest.h>

#include <string>

#include "gpu/fake/fake_cuda.h"
#include "runtime/engine.h"
#include "service/cuda_driver.h"

namespace talaria {
namespace {

TEST(OldDriver, MissingEntryPointsAreNamedWhenNeeded) {
  fake_cuda_hide("cuFuncLoad");
  fake_cuda_hide("cuGraphAddEventRecordNode");
  EXPECT_TRUE(make_device_engine(read_config(), 0).ok()) << last_error_text();

  const CudaDriver* driver = *cuda_driver();
  EXPECT_FALSE(driver->graph_add_event_record.available());
  EXPECT_EQ(driver->graph_add_event_record(nullptr, nullptr, nullptr, 0, nullptr).code(), Code::kUnhandledCuda);
  EXPECT_EQ(std::string(last_error_text()),
            "the CUDA driver has no cuGraphAddEventRecordNode: CUDA 11.1 or newer is needed");
}

}  // namespace
}  // namespace talaria
