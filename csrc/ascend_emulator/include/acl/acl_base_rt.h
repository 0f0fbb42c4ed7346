// The runtime's types under the name that newer programs include.
#pragma once

#include "acl_base.h"
