// Gloo over TCP on the loopback interface, the only transport between processes of one host that it has.
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/alltoall.h>
#include <gloo/broadcast.h>
#include <gloo/config.h>
#include <gloo/math.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <cstring>
#include <exception>
#include <memory>
#include <vector>

#include "driver.h"

namespace talaria::compare {
namespace {

class Gloo final : public Library {
 public:
  void connect(Meeting&, const std::string& folder, int rank, int nranks) override {
    gloo::transport::tcp::attr attributes;
    attributes.iface = "lo";
    gloo::rendezvous::FileStore store(folder);
    auto context = std::make_shared<gloo::rendezvous::Context>(rank, nranks);
    auto device = gloo::transport::tcp::CreateDevice(attributes);
    context->connectFullMesh(store, device);
    context_ = context;
  }
  int rank() const override { return context_->rank; }
  std::string version() const override {
    return std::to_string(GLOO_VERSION_MAJOR) + "." + std::to_string(GLOO_VERSION_MINOR) + "." +
           std::to_string(GLOO_VERSION_PATCH);
  }

  std::function<void()> prepare(const Call& call) override {
    switch (call.operation) {
      case Operation::kAllReduce:
        return call.algorithm == "halving_doubling" ? halving_doubling(call) : all_reduce(call);
      case Operation::kAllGather: {
        auto options = std::make_shared<gloo::AllgatherOptions>(context_);
        options->setInput(call.input, call.input_count);
        options->setOutput(call.output, call.output_count);
        return [options] { gloo::allgather(*options); };
      }
      case Operation::kReduceScatter: return reduce_scatter(call);
      case Operation::kBroadcast: {
        auto options = std::make_shared<gloo::BroadcastOptions>(context_);
        options->setOutput(call.output, call.output_count);
        options->setRoot(kRoot);
        return [options] { gloo::broadcast(*options); };
      }
      case Operation::kAllToAll: {
        auto options = std::make_shared<gloo::AlltoallOptions>(context_);
        options->setInput(call.input, call.input_count);
        options->setOutput(call.output, call.output_count);
        return [options] { gloo::alltoall(*options); };
      }
    }
    return {};
  }

 private:
  std::function<void()> all_reduce(const Call& call) const {
    using Options = gloo::AllreduceOptions;
    auto options = std::make_shared<Options>(context_);
    if (call.algorithm == "ring") options->setAlgorithm(Options::Algorithm::RING);
    if (call.algorithm == "bcube") options->setAlgorithm(Options::Algorithm::BCUBE);
    options->setInput(call.input, call.block);
    options->setOutput(call.output, call.block);
    options->setReduceFunction(static_cast<void (*)(void*, const void*, const void*, size_t)>(&gloo::sum<float>));
    return [options] { gloo::allreduce(*options); };
  }

  // The older classes reduce in place. Only the first call, which may be the checked one, has its result copied to the
  // output; the others are spared that, in Gloo's favour.
  std::function<void()> halving_doubling(const Call& call) const {
    using Algorithm = gloo::AllreduceHalvingDoubling<float>;
    auto algorithm =
        std::make_shared<Algorithm>(context_, std::vector<float*>{call.input}, static_cast<int>(call.block));
    return first_then_in_place(algorithm, call);
  }

  std::function<void()> reduce_scatter(const Call& call) const {
    using Algorithm = gloo::ReduceScatterHalvingDoubling<float>;
    auto algorithm =
        std::make_shared<Algorithm>(context_, std::vector<float*>{call.input}, static_cast<int>(call.input_count),
                                    std::vector<int>(context_->size, static_cast<int>(call.block)));
    return first_then_in_place(algorithm, call);
  }

  template <typename Algorithm>
  static std::function<void()> first_then_in_place(const std::shared_ptr<Algorithm>& algorithm, const Call& call) {
    return [algorithm, call, first = true]() mutable {
      algorithm->run();
      if (first) std::memcpy(call.output, call.input, call.output_count * sizeof(float));
      first = false;
    };
  }

  std::shared_ptr<gloo::Context> context_;
};

}  // namespace
}  // namespace talaria::compare

int main(int argc, char** argv) {
  talaria::compare::Gloo library;
  try {
    return talaria::compare::run_driver(argc, argv, library);
  } catch (const std::exception& error) {
    talaria::compare::require(false, error.what());
  }
}
