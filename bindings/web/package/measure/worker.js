/** The worker of the package, behind a clock. Only pages that measure load it. */

import "./clock.js";
import "/privet/worker.js";
