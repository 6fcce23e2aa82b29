// Entry points that read the library's parameters: the variables of base/config.cc, as they are now.
#include <cstdio>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/boundary.h"
#include "base/config.h"
#include "base/known_variables.h"

namespace talaria::api {
namespace {

// A handle is the address of its row.
ncclParamHandle_t handle_of(const ConfigRow& row) {
  return reinterpret_cast<ncclParamHandle_t>(const_cast<ConfigRow*>(&row));
}

Result<const ConfigRow*> row_of(ncclParamHandle_t handle, const char* function) {
  TRY(check_pointer(handle, function, "handle"));
  for (const ConfigRow& row : config_rows()) {
    if (handle == handle_of(row)) return &row;
  }
  return fail(Code::kInvalidArgument, "{} : the handle was not made by ncclParamBind", function);
}

Result<const ConfigRow*> row_named(const char* key, const char* function) {
  TRY(check_pointer(key, function, "key"));
  if (const ConfigRow* row = find_config_row(key)) return row;
  if (is_known_variable(key)) {
    return fail(Code::kInvalidArgument, "{} : {} has no effect in this library", function, key);
  }
  const std::string nearest = nearest_variable(key);
  return fail(Code::kInvalidArgument, "{} : {} is no parameter of this library{}", function, key,
              nearest.empty() ? "" : "; did you mean " + nearest + "?");
}

bool is_number(const ConfigRow& row) { return std::holds_alternative<int64_t Config::*>(row.field); }

int64_t number_of(const ConfigRow& row) { return read_config().*std::get<int64_t Config::*>(row.field); }

Status require(const ConfigRow& row, bool number, const char* function) {
  if (is_number(row) == number) return Status();
  return fail(Code::kInvalidArgument, "{} : {} is {}", function, row.name,
              number ? "a text, which ncclParamGetStr reads" : "a number, which ncclParamGetI64 reads");
}

// A copy of `text` that lives as long as the library, as clients expect of what they are given; equal texts share one.
const char* kept(std::string text) {
  static auto* mutex = new std::mutex;
  static auto* texts = new std::set<std::string>;
  const std::lock_guard lock(*mutex);
  return texts->insert(std::move(text)).first->c_str();
}

template <typename Integer>
ncclResult_t get_integer(const char* function, ncclParamHandle_t handle, Integer* out) {
  return guarded(function, [&]() -> Status {
    const ConfigRow* row = TRY(row_of(handle, function));
    TRY(check_pointer(out, function, "out"));
    TRY(require(*row, true, function));
    const int64_t value = number_of(*row);
    if (!std::in_range<Integer>(value)) {
      return fail(Code::kInvalidArgument, "{} : the value {} of {} does not fit into the {} bytes asked for", function,
                  value, row->name, sizeof(Integer));
    }
    *out = static_cast<Integer>(value);
    return Status();
  });
}

// Copies the value's bytes: a number's eight, or a text with its end.
Status copy_value(const ConfigRow& row, std::span<std::byte> out, int* length) {
  const int64_t number = is_number(row) ? number_of(row) : 0;
  const std::string text = is_number(row) ? std::string() : text_of(read_config(), row);
  const size_t bytes = is_number(row) ? sizeof(number) : text.size() + 1;
  if (bytes > out.size()) {
    return fail(Code::kInvalidArgument, "ParamGet : the value of {} takes {} bytes, there is room for {}", row.name,
                bytes, out.size());
  }
  memcpy(out.data(), is_number(row) ? static_cast<const void*>(&number) : text.c_str(), bytes);
  *length = static_cast<int>(bytes);
  return Status();
}

Result<int> print_parameters() {
  const ConfigFiles files = read_config_files();
  const Config config = read_config(files);
  for (const ConfigRow& row : config_rows()) printf("%s=%s\n", row.name, text_of(config, row).c_str());
  if (config.param_dump_all != 0) {
    for (const VariableGroup& group : variables_without_effect()) {
      for (const std::string& name : names_of(group)) {
        const std::optional<Setting> setting = find_setting(files, name.c_str());
        if (!name.ends_with('*')) printf("%s=%s (no effect)\n", name.c_str(), setting ? setting->value.c_str() : "");
      }
    }
  }
  fflush(stdout);
  return 0;
}

}  // namespace
}  // namespace talaria::api

using namespace talaria;
using namespace talaria::api;

extern "C" {

void pncclParamDumpAll() { guarded_value("ParamDumpAll", 0, print_parameters); }

ncclResult_t pncclParamBind(ncclParamHandle_t* out, const char* key) {
  return guarded("ParamBind", [&]() -> Status {
    TRY(check_pointer(out, "ParamBind", "out"));
    *out = handle_of(*TRY(row_named(key, "ParamBind")));
    return Status();
  });
}

ncclResult_t pncclParamGetI8(ncclParamHandle_t h, int8_t* out) { return get_integer("ParamGetI8", h, out); }
ncclResult_t pncclParamGetI16(ncclParamHandle_t h, int16_t* out) { return get_integer("ParamGetI16", h, out); }
ncclResult_t pncclParamGetI32(ncclParamHandle_t h, int32_t* out) { return get_integer("ParamGetI32", h, out); }
ncclResult_t pncclParamGetI64(ncclParamHandle_t h, int64_t* out) { return get_integer("ParamGetI64", h, out); }
ncclResult_t pncclParamGetU8(ncclParamHandle_t h, uint8_t* out) { return get_integer("ParamGetU8", h, out); }
ncclResult_t pncclParamGetU16(ncclParamHandle_t h, uint16_t* out) { return get_integer("ParamGetU16", h, out); }
ncclResult_t pncclParamGetU32(ncclParamHandle_t h, uint32_t* out) { return get_integer("ParamGetU32", h, out); }
ncclResult_t pncclParamGetU64(ncclParamHandle_t h, uint64_t* out) { return get_integer("ParamGetU64", h, out); }

ncclResult_t pncclParamGetStr(ncclParamHandle_t h, const char** out) {
  return guarded("ParamGetStr", [&]() -> Status {
    const ConfigRow* row = TRY(row_of(h, "ParamGetStr"));
    TRY(check_pointer(out, "ParamGetStr", "out"));
    TRY(require(*row, false, "ParamGetStr"));
    *out = kept(text_of(read_config(), *row));
    return Status();
  });
}

ncclResult_t pncclParamGet(ncclParamHandle_t h, void* out, int maxLen, int* len) {
  return guarded("ParamGet", [&]() -> Status {
    TRY(check_pointer(len, "ParamGet", "len"));
    *len = 0;
    const ConfigRow* row = TRY(row_of(h, "ParamGet"));
    TRY(check_pointer(out, "ParamGet", "out"));
    const size_t room = maxLen > 0 ? static_cast<size_t>(maxLen) : 0;
    return copy_value(*row, {static_cast<std::byte*>(out), room}, len);
  });
}

ncclResult_t pncclParamGetParameter(const char* key, const char** value, int* valueLen) {
  return guarded("ParamGetParameter", [&]() -> Status {
    const ConfigRow* row = TRY(row_named(key, "ParamGetParameter"));
    TRY(check_pointer(value, "ParamGetParameter", "value"));
    TRY(check_pointer(valueLen, "ParamGetParameter", "valueLen"));
    *value = kept(text_of(read_config(), *row));
    *valueLen = static_cast<int>(strlen(*value));
    return Status();
  });
}

ncclResult_t pncclParamGetAllParameterKeys(const char*** table, int* tableLen) {
  return guarded("ParamGetAllParameterKeys", [&]() -> Status {
    TRY(check_pointer(table, "ParamGetAllParameterKeys", "table"));
    TRY(check_pointer(tableLen, "ParamGetAllParameterKeys", "tableLen"));
    static std::vector<const char*>* keys = [] {
      auto* names = new std::vector<const char*>;
      for (const ConfigRow& row : config_rows()) names->push_back(row.name);
      return names;
    }();
    *table = keys->data();
    *tableLen = static_cast<int>(keys->size());
    return Status();
  });
}

// Weak, so that a profiler can put its own in front (design §11).
decltype(pncclParamDumpAll) ncclParamDumpAll __attribute__((weak, alias("pncclParamDumpAll")));
decltype(pncclParamBind) ncclParamBind __attribute__((weak, alias("pncclParamBind")));
decltype(pncclParamGetI8) ncclParamGetI8 __attribute__((weak, alias("pncclParamGetI8")));
decltype(pncclParamGetI16) ncclParamGetI16 __attribute__((weak, alias("pncclParamGetI16")));
decltype(pncclParamGetI32) ncclParamGetI32 __attribute__((weak, alias("pncclParamGetI32")));
decltype(pncclParamGetI64) ncclParamGetI64 __attribute__((weak, alias("pncclParamGetI64")));
decltype(pncclParamGetU8) ncclParamGetU8 __attribute__((weak, alias("pncclParamGetU8")));
decltype(pncclParamGetU16) ncclParamGetU16 __attribute__((weak, alias("pncclParamGetU16")));
decltype(pncclParamGetU32) ncclParamGetU32 __attribute__((weak, alias("pncclParamGetU32")));
decltype(pncclParamGetU64) ncclParamGetU64 __attribute__((weak, alias("pncclParamGetU64")));
decltype(pncclParamGetStr) ncclParamGetStr __attribute__((weak, alias("pncclParamGetStr")));
decltype(pncclParamGet) ncclParamGet __attribute__((weak, alias("pncclParamGet")));
decltype(pncclParamGetParameter) ncclParamGetParameter __attribute__((weak, alias("pncclParamGetParameter")));
decltype(pncclParamGetAllParameterKeys) ncclParamGetAllParameterKeys
    __attribute__((weak, alias("pncclParamGetAllParameterKeys")));
}
