// What a program includes first.
#pragma once

#include "acl_base.h"
#include "acl_mdl.h"
#include "acl_rt.h"
