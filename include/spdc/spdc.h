// Everything.
#pragma once

#include "spdc/certificate.h"
#include "spdc/dataset.h"
#include "spdc/error.h"
#include "spdc/io.h"
#include "spdc/losses.h"
#include "spdc/matrix.h"
#include "spdc/model.h"
#include "spdc/options.h"
#include "spdc/problem.h"
#include "spdc/regularizers.h"
#include "spdc/result.h"
#include "spdc/solvers.h"
#include "spdc/stopping.h"
#include "spdc/trace.h"
