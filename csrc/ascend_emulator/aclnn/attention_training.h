// Attention of packed sequences (layout TND), for the versions that take every layout.
#pragma once

#include "kernel.h"

namespace emu {

void plan_packed_score(Plan& p);
void run_packed_score(Run& r);
void plan_packed_grad(Plan& p);
void run_packed_grad(Run& r);

}  // namespace emu
