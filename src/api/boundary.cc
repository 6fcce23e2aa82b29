#include "api/boundary.h"

namespace talaria::api {

Status stray_exception(const char* function) {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return fail(Code::kSystem, "{} : out of memory", function);
  } catch (const std::exception& exception) {
    return fail(Code::kInternal, "{} : unexpected exception: {}", function, exception.what());
  } catch (...) {
    return fail(Code::kInternal, "{} : unexpected exception", function);
  }
}

Status not_supported(const char* function) {
  return fail(Code::kInvalidUsage, "{} is not supported yet by this build of Talaria", function);
}

Status check_pointer(const void* pointer, const char* function, const char* argument) {
  if (pointer != nullptr) return Status();
  return fail(Code::kInvalidArgument, "{} : {} argument is NULL", function, argument);
}

}  // namespace talaria::api
