// Models: those that graph capture makes. acl_rt.h declares them.
#pragma once

#include "acl_rt.h"
