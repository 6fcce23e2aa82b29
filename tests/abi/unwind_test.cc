// Exceptions find their handlers through the unwind lookup that the library brings for old C libraries.
//
// Linked with a static libgcc and src/api/unwind_lookup.cc, as the library is: a lookup that finds nothing ends this
// program by std::terminate.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <stdexcept>

namespace {

[[gnu::noinline]] int descend(int depth) {
  if (depth == 0) throw std::runtime_error("bottom");
  return descend(depth - 1) + 1;
}

bool caught() {
  try {
    return descend(20) < 0;
  } catch (const std::exception& exception) {
    return strcmp(exception.what(), "bottom") == 0;
  }
}

#ifdef DLFO_STRUCT_HAS_EH_DBASE
bool finds(void* address) {
  dl_find_object found;
  return _dl_find_object(address, &found) == 0 && found.dlfo_eh_frame != nullptr && found.dlfo_map_start <= address &&
         address < found.dlfo_map_end;
}
bool lookups() {
  int on_stack = 0;
  return finds(reinterpret_cast<void*>(&descend)) && finds(reinterpret_cast<void*>(&memcpy)) && !finds(&on_stack);
}
#else
bool lookups() { return true; }
#endif

}  // namespace

int main() {
  const bool good = caught() && caught() && lookups();
  printf("%s\n", good ? "found" : "not found");
  return good ? 0 : 1;
}
