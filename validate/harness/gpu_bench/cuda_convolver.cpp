#include "sim/base/error.h"
#include "validate/harness/gpu_bench/cuda_parts.h"

#ifdef LOCKSTEP_HAS_CUDNN
#include "validate/harness/device/convolution_choice.h"
#include "validate/harness/device/cuda_convolutions.h"
#endif

namespace lockstep::harness {

#ifdef LOCKSTEP_HAS_CUDNN
namespace {

ConvolutionDirection direction_of(ConvolutionPass pass) {
  if (pass == ConvolutionPass::forward)
    return ConvolutionDirection::forward;
  return pass == ConvolutionPass::by_data ? ConvolutionDirection::input_gradient
                                          : ConvolutionDirection::weight_gradient;
}

bool is_of(const ConvolutionChoice& choice, const ConvolutionCase& convolution) {
  const ConvolutionCase chosen{
      .precision = convolution.precision, .shape = choice.shape, .pass = convolution.pass};
  return choice.type == type_of(convolution.precision) &&
         choice.direction == direction_of(convolution.pass) && key_cells(chosen) == key_cells(convolution);
}

class CudnnConvolver final : public Convolver {
 public:
  CudnnConvolver(CudaStage& stage, bool uses_tf32) : convolutions_(stage.stream()) {
    if (uses_tf32)
      convolutions_.use_tf32();
  }

  bool run(const ConvolutionCase& convolution, Tensor output, Tensor input, Tensor weight) override {
    switch (convolution.pass) {
      case ConvolutionPass::forward:
        return convolutions_.forward(convolution.shape, output, input, weight);
      case ConvolutionPass::by_data:
        return convolutions_.input_gradient(convolution.shape, input, output, weight);
      case ConvolutionPass::by_weight:
        return convolutions_.weight_gradient(convolution.shape, weight, output, input);
    }
    return false;
  }

  std::string algorithm(const ConvolutionCase& convolution) override {
    for (const ConvolutionChoice& choice : convolution_choices_in(convolutions_.choices()))
      if (is_of(choice, convolution))
        return choice.algorithm;
    return "";
  }

 private:
  CudaConvolutions convolutions_;
};

}  // namespace

std::unique_ptr<Convolver> make_cudnn_convolver(CudaStage& stage, bool uses_tf32) {
  return std::make_unique<CudnnConvolver>(stage, uses_tf32);
}
#else
std::unique_ptr<Convolver> make_cudnn_convolver(CudaStage& /*stage*/, bool /*uses_tf32*/) {
  throw EnvironmentError("this program was built without cuDNN: convolutions are not measured");
}
#endif

}  // namespace lockstep::harness
