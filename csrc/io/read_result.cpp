#include "io/read_result.hpp"

namespace ciwrap {

long read_result(const ReadRequest&, long result) {
    return result;
}

}  // namespace ciwrap
