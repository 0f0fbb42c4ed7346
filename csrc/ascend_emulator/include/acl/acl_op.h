// Programs include it beside acl.h. The emulator has none of the functions that it declares, so none is declared here: a
// program that calls one is told by its compiler.
#pragma once

#include "acl_base.h"
