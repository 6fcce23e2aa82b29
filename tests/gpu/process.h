// The program itself as a child process that plays one rank.
#pragma once

namespace talaria::gpu_test {

bool is_child_process();
int child_main();  // exit status

}  // namespace talaria::gpu_test
