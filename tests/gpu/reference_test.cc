// Bit equality with the simulator's reference on random floats, where the order of additions shows.
#include <gtest/gtest.h>

#include "gpu/world.h"
