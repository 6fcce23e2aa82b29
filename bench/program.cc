#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

#include "device.h"
#include "fatal.h"
#include "operation.h"
#include "options.h"
#include "worker.h"
#include "world.h"

namespace talaria::bench {
namespace {

// Ends the process when its time is up, whatever the other threads wait for.
void start_watchdog(int seconds) {
  std::thread([seconds] {
    std::this_thread::sleep_for(std::chrono::seconds(seconds));
    end_process(kExitTimeout, fmt::format("not done after {} seconds", seconds));
  }).detach();
}

// One process of the run: its threads, the first of which is the caller.
int run_process(const Options& options, const Operation& operation, World& world, int process) {
  if (options.timeout_seconds > 0) start_watchdog(options.timeout_seconds);
  const int gpus = visible_gpus();
  // The library asks for consent before two ranks share a GPU; that more ranks than GPUs were asked for is consent.
  if (gpus > 0 && options.nranks() > gpus) setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 0);
  bool right = true;
  const auto run_thread = [&](int thread) {
    Worker worker(options, operation, world, process * options.threads + thread);
    if (!worker.run()) right = false;  // only the first thread of all can say so
  };
  std::vector<std::thread> others;
  for (int thread = 1; thread < options.threads; ++thread) others.emplace_back(run_thread, thread);
  run_thread(0);
  for (std::thread& other : others) other.join();
  return right ? 0 : kExitWrong;
}

}  // namespace

int run_program(int argc, char** argv, const Operation& operation) {
  ParsedOptions parsed = parse_options(argc, argv, operation.program);
  if (!parsed.options) return parsed.exit_code;
  Options& options = *parsed.options;
  if (options.list_devices) {
    fmt::print("{}\n", visible_gpus());
    return 0;
  }
  if (!options.seed_given) options.seed = std::random_device{}();
  World world(options.processes, options.threads, options.gpus);
  return run_processes(options.processes, [&](int process) { return run_process(options, operation, world, process); });
}

}  // namespace talaria::bench
