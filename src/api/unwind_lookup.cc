// How the unwinder inside this library finds unwind tables, so that the library loads on glibc 2.34.
//
// A static libgcc built on glibc >= 2.35 imports _dl_find_object, which would raise the library's glibc requirement
// to 2.35. This definition, hidden by the version script, answers from dl_iterate_phdr instead.
#include <dlfcn.h>
#include <link.h>

#ifdef DLFO_STRUCT_HAS_EH_DBASE

namespace {

struct Search {
  uintptr_t address;
  dl_find_object* found;
};

// Called once per loaded object; 1 ends the search.
int examine(dl_phdr_info* object, size_t, void* argument) {
  const Search& search = *static_cast<Search*>(argument);
  const ElfW(Phdr)* holding = nullptr;
  const ElfW(Phdr)* tables = nullptr;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = object->dlpi_phdr[i];
    const uintptr_t start = object->dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_LOAD && search.address - start < header.p_memsz) holding = &header;
    if (header.p_type == PT_GNU_EH_FRAME) tables = &header;
  }
  if (holding == nullptr) return 0;
  if (tables == nullptr) return 1;
  *search.found = {};
  search.found->dlfo_map_start = reinterpret_cast<void*>(object->dlpi_addr + holding->p_vaddr);
  search.found->dlfo_map_end = reinterpret_cast<void*>(object->dlpi_addr + holding->p_vaddr + holding->p_memsz);
  search.found->dlfo_eh_frame = reinterpret_cast<void*>(object->dlpi_addr + tables->p_vaddr);
  return 1;
}

}  // namespace

extern "C" int _dl_find_object(void* address, dl_find_object* result) noexcept {
  result->dlfo_eh_frame = nullptr;
  Search search{reinterpret_cast<uintptr_t>(address), result};
  dl_iterate_phdr(examine, &search);
  return result->dlfo_eh_frame != nullptr ? 0 : -1;
}

#endif
