#include "options.h"

#include <CLI/CLI.hpp>

#include <cmath>
#include <cstdlib>

#include "fatal.h"

namespace talaria::bench {
namespace {

// Options that arrive as text and mean something only together with the others.
struct Texts {
  std::string min_bytes = "32M", max_bytes = "32M", step_bytes = "1M", type = "float", reduction = "sum", root = "0";
  int average = 1;
};

// A complaint about the options; caught in parse_options() together with CLI11's own.
[[noreturn]] void refuse(const std::string& text) { throw CLI::ValidationError(text); }

uint64_t bytes_option(const std::string& name, const std::string& text) {
  const std::optional<uint64_t> bytes = parse_bytes(text);
  if (!bytes) refuse(fmt::format("{}: '{}' is not a size (examples: 8, 64K, 128M, 1G)", name, text));
  return *bytes;
}

template <typename Row>
std::vector<const Row*> rows_option(const std::string& name, const std::string& text, std::span<const Row> rows) {
  std::vector<const Row*> chosen;
  std::string known;
  for (const Row& row : rows) {
    if (text == "all" || text == row.name) chosen.push_back(&row);
    known += std::string(row.name) + ", ";
  }
  if (chosen.empty()) refuse(fmt::format("{}: '{}' is none of {}all", name, text, known));
  return chosen;
}

std::vector<int> roots_option(const std::string& text, int nranks) {
  std::vector<int> roots;
  if (text == "all") {
    for (int root = 0; root < nranks; ++root) roots.push_back(root);
    return roots;
  }
  char* end = nullptr;
  const long root = std::strtol(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || root < 0 || root >= nranks) {
    refuse(fmt::format("--root: '{}' is neither one of the {} ranks nor all", text, nranks));
  }
  return {static_cast<int>(root)};
}

void declare_shape(CLI::App& app, Options& options, Texts& texts) {
  app.add_option("-t,--nthreads", options.threads, "threads per process")->check(CLI::Range(1, 1024));
  app.add_option("-g,--ngpus", options.gpus, "GPUs (or CPU ranks) per thread")->check(CLI::Range(1, 1024));
  app.add_option("-p,--processes", options.processes, "processes on this machine")->check(CLI::Range(1, 1024));
  app.add_option("-b,--minbytes", texts.min_bytes, "smallest size");
  app.add_option("-e,--maxbytes", texts.max_bytes, "largest size");
  app.add_option("-i,--stepbytes", texts.step_bytes, "increment between sizes");
  app.add_option("-f,--stepfactor", options.step_factor, "factor between sizes, instead of an increment")
      ->check(CLI::Range(1, 1 << 20));
}

void declare_work(CLI::App& app, Options& options, Texts& texts) {
  app.add_option("-o,--op", texts.reduction, "reduction: sum, prod, max, min, avg, mulsum or all");
  app.add_option("-d,--datatype", texts.type, "datatype: int8, half, float, bfloat16, … or all");
  app.add_option("-r,--root", texts.root, "root rank, or all");
  app.add_option("-n,--iters", options.iterations, "timed iterations")->check(CLI::Range(1, 1 << 30));
  app.add_option("-w,--warmup_iters", options.warmup_iterations, "iterations before the first timing")
      ->check(CLI::Range(0, 1 << 30));
  app.add_option("-m,--agg_iters", options.aggregate, "operations grouped in each iteration")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("-a,--average", texts.average, "time to report: 0 rank 0, 1 mean, 2 minimum, 3 maximum over threads")
      ->check(CLI::Range(0, 3));
  app.add_option("-c,--check", options.checks, "iterations whose results are checked; 0 checks nothing")
      ->check(CLI::Range(0, 1 << 30));
  app.add_option("-z,--blocking", options.blocking, "wait after every iteration (0 or 1)");
  app.add_option("-y,--stream_null", options.null_stream, "use the default stream (0 or 1)");
  app.add_option("-G,--cudagraph", options.graph_launches, "capture the iterations as a graph, launch it so many times")
      ->check(CLI::Range(0, 1 << 30));
  app.add_option("-C,--report_cputime", options.report_cpu_time,
                 "report the time of the calls, not of the work (0 or 1)");
  app.add_option("-T,--timeout", options.timeout_seconds, "end the program after so many seconds; 0 never")
      ->check(CLI::Range(0, 1 << 30));
  app.add_option("--seed", options.seed, "seed of the input data (default: a new one each run)");
  app.add_option("-J,--output_file,--json", options.json_file, "write the run as a JSON object to this file");
  app.add_flag("--devices", options.list_devices, "print the number of usable GPUs and end");
}

// Looks at what only makes sense together.
void resolve(Options& options, const Texts& texts) {
  options.min_bytes = bytes_option("--minbytes", texts.min_bytes);
  options.max_bytes = bytes_option("--maxbytes", texts.max_bytes);
  options.step_bytes = bytes_option("--stepbytes", texts.step_bytes);
  if (options.max_bytes < options.min_bytes) {
    refuse(fmt::format("--maxbytes ({}) is less than --minbytes ({})", options.max_bytes, options.min_bytes));
  }
  if (options.step_factor <= 1 && options.step_bytes == 0) refuse("--stepbytes: 0 leads nowhere");
  if (options.step_factor > 1 && options.min_bytes == 0) refuse("--stepfactor leads nowhere from --minbytes 0");
  if (options.graph_launches > 0 && options.blocking) refuse("--cudagraph and --blocking exclude each other");
  if (options.graph_launches > 0 && options.null_stream) refuse("--cudagraph: the default stream cannot be captured");
  options.types = rows_option("--datatype", texts.type, element_types());
  options.reductions = rows_option("--op", texts.reduction, reductions());
  options.several_types = texts.type == "all" || texts.reduction == "all";
  options.roots = roots_option(texts.root, options.nranks());
  options.average = static_cast<Average>(texts.average);
}

}  // namespace

std::optional<uint64_t> parse_bytes(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || !std::isfinite(number) || number < 0) return std::nullopt;
  const std::string suffix = end;
  int shift = 0;
  if (suffix == "K" || suffix == "k") shift = 10;
  if (suffix == "M" || suffix == "m") shift = 20;
  if (suffix == "G" || suffix == "g") shift = 30;
  if (shift == 0 && !suffix.empty()) return std::nullopt;
  const double bytes = std::ldexp(number, shift);
  if (bytes > 0x1p50) return std::nullopt;
  return static_cast<uint64_t>(bytes);
}

ParsedOptions parse_options(int argc, char** argv, const std::string& program) {
  Options options;
  Texts texts;
  CLI::App app("Times one operation over a range of sizes and checks its results.", program);
  // Scripts put defaults first and the user's options after them.
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)->always_capture_default();
  declare_shape(app, options, texts);
  declare_work(app, options, texts);
  try {
    app.parse(argc, argv);
    resolve(options, texts);
  } catch (const CLI::CallForHelp& help) {
    return {std::nullopt, app.exit(help)};
  } catch (const CLI::ParseError& error) {
    app.exit(error);
    return {std::nullopt, kExitUsage};
  }
  options.seed_given = app.count("--seed") > 0;
  return {options, 0};
}

}  // namespace talaria::bench
