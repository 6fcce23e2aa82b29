#include "json_report.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <ctime>
#include <fstream>
#include <thread>

#include "fatal.h"
#include "report.h"

namespace talaria::bench {
namespace {

// A JSON string. Bytes that are no ASCII are passed on.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) out += fmt::format("\\u{:04x}", static_cast<int>(c));
    else out += c;
  }
  return out + '"';
}

// Members of an object, or elements of an array.
std::string joined(const std::vector<std::string>& parts, const char* between) {
  std::string out;
  for (const std::string& part : parts) out += (out.empty() ? "" : between) + part;
  return out;
}
std::string member(const char* name, const std::string& value) { return quoted(name) + ": " + value; }
std::string object(const std::vector<std::string>& members) { return "{" + joined(members, ", ") + "}"; }
std::string lines(const std::vector<std::string>& elements) {
  return elements.empty() ? "[]" : "[\n    " + joined(elements, ",\n    ") + "\n  ]";
}
std::string number(double value) { return std::isfinite(value) ? fmt::format("{:.6g}", value) : "null"; }
const char* truth(bool value) { return value ? "true" : "false"; }

std::string processor_name() {
  std::ifstream lines("/proc/cpuinfo");
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "?";
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

const char* name_of(const Reduction* reduction) { return reduction != nullptr ? reduction->name : "none"; }

}  // namespace

Bandwidth bandwidth_of(const Case& row, const Measurement& measurement, const Operation& operation, int nranks) {
  const double algorithm = measurement.usec > 0 ? static_cast<double>(row.bytes()) / measurement.usec / 1e3 : 0;
  return {algorithm, algorithm * operation.bus_factor(nranks)};
}

void JsonReport::open() {
  if (options_.json_file.empty()) return;
  file_ = std::fopen(options_.json_file.c_str(), "w");
  if (file_ != nullptr) return;
  end_process(kExitUsage, fmt::format("--json: cannot write {}: {}", options_.json_file, std::strerror(errno)));
}

std::string JsonReport::measurement(const Case& row, const Measurement& measurement) const {
  const Bandwidth bandwidth = bandwidth_of(row, measurement, operation_, options_.nranks());
  return object({member(options_.report_cpu_time ? "cpu_time_usec" : "time_usec", number(measurement.usec)),
                 member("algbw_gbps", number(bandwidth.algorithm)), member("busbw_gbps", number(bandwidth.bus)),
                 member("wrong", measurement.wrong ? fmt::format("{}", *measurement.wrong) : "null")});
}

void JsonReport::row(const Case& row, const Measurement& out_of_place, const Measurement& in_place) {
  if (file_ == nullptr) return;
  rows_.push_back(object({member("bytes", fmt::format("{}", row.bytes())),
                          member("count", fmt::format("{}", row.counts.argument)),
                          member("type", quoted(row.type->name)), member("redop", quoted(name_of(row.reduction))),
                          member("root", fmt::format("{}", row.root)),
                          member("out_of_place", measurement(row, out_of_place)),
                          member("in_place", measurement(row, in_place))}));
}

void JsonReport::skipped(const Case& row, const char* reason) {
  if (file_ == nullptr) return;
  skipped_.push_back(object({member("type", quoted(row.type->name)), member("redop", quoted(name_of(row.reduction))),
                             member("reason", quoted(reason))}));
}

std::string JsonReport::machine() const {
  utsname system{};
  uname(&system);
  return object({member("host", quoted(system.nodename)), member("system", quoted(system.sysname)),
                 member("kernel", quoted(system.release)), member("architecture", quoted(system.machine)),
                 member("processor", quoted(processor_name())),
                 member("cores", fmt::format("{}", std::thread::hardware_concurrency()))});
}

std::string JsonReport::options() const {
  const auto integer = [](const char* name, auto value) { return member(name, fmt::format("{}", value)); };
  return object({integer("processes", options_.processes), integer("threads", options_.threads),
                 integer("ranks_per_thread", options_.gpus), integer("min_bytes", options_.min_bytes),
                 integer("max_bytes", options_.max_bytes), integer("step_bytes", options_.step_bytes),
                 integer("step_factor", options_.step_factor), integer("iterations", options_.iterations),
                 integer("warmup_iterations", options_.warmup_iterations),
                 integer("aggregated_iterations", options_.aggregate), integer("checks", options_.checks),
                 integer("graph_launches", options_.graph_launches),
                 integer("average", static_cast<int>(options_.average)), integer("seed", options_.seed),
                 member("blocking", truth(options_.blocking)), member("null_stream", truth(options_.null_stream)),
                 member("report_cpu_time", truth(options_.report_cpu_time))});
}

void JsonReport::write(const World& world, uint64_t wrong, double average_bus_bandwidth) {
  if (file_ == nullptr) return;
  int version = 0;
  check(ncclGetVersion(&version), "ncclGetVersion");
  std::vector<std::string> ranks;
  for (int rank = 0; rank < options_.nranks(); ++rank) ranks.push_back(quoted(world.label(rank)));
  const std::string versions =
      object({member("nccl_headers", fmt::format("{}", NCCL_VERSION_CODE)),
              member("nccl_library", fmt::format("{}", version)), member("library_path", quoted(library_path()))});
  const std::string text =
      "{\n  " +
      joined({member("program", quoted(operation_.program)), member("time", quoted(utc_now())),
              member("machine", machine()), member("versions", versions), member("options", options()),
              member("ranks", lines(ranks)), member("rows", lines(rows_)), member("skipped", lines(skipped_)),
              member("wrong", options_.checks > 0 ? fmt::format("{}", wrong) : "null"),
              member("average_busbw_gbps", number(average_bus_bandwidth))},
             ",\n  ") +
      "\n}\n";
  const bool written = std::fwrite(text.data(), 1, text.size(), file_) == text.size();
  if (std::fclose(file_) != 0 || !written) fatal("cannot write {}: {}", options_.json_file, std::strerror(errno));
  file_ = nullptr;
}

}  // namespace talaria::bench
