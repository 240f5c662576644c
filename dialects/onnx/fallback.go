package onnx

import "github.com/aton-project/aton/ssa/tensor"

// TypeFallback finds another way to compute an operator on elements of a type
// for which it has no kernel. It builds that, replaces the op and reports
// true; false if it does not serve the type. Nil: there is no such way.
func TypeFallback(name string) func(d *Downgrade, t tensor.DType) bool { return typeFallbacks[name] }

var typeFallbacks = allFallbacks()

func allFallbacks() map[string]func(d *Downgrade, t tensor.DType) bool {
	all := float64Fallbacks()
	for name, f := range map[string]func(d *Downgrade, t tensor.DType) bool{
		"Max":                       extremeByWhere,
		"Min":                       extremeByWhere,
		"Clip":                      clipByMinMax,
		"Equal":                     equalByOrder,
		"Less":                      orderOfLong,
		"Greater":                   orderOfLong,
		"Pow":                       powByProducts,
		"Relu":                      reluByMax,
		"Sum":                       sumByAdd,
		"Mean":                      sumByAdd,
		"Pad":                       padByConcat,
		"OneHot":                    oneHotFallback,
		"MatMul":                    matMulByProducts,
		"InstanceNormalization":     instanceNormalization,
		"MeanVarianceNormalization": mvnFallback,
		"DepthToSpace":              depthToSpace,
		"SpaceToDepth":              spaceToDepth,
		"GlobalMaxPool":             globalByReduce("ReduceMax"),
		"GlobalAveragePool":         globalByReduce("ReduceMean"),
		"Hardmax":                   hardmax,
		"Gemm":                      gemmByMatMul,
		"PRelu":                     preluByWhere,
		"AveragePool":               averagePoolFallback,
		"RandomUniform":             randomUniform,
		"RandomUniformLike":         randomUniform,
		"RandomNormal":              randomNormal,
		"RandomNormalLike":          randomNormal,
		"Multinomial":               multinomial,
		"Dropout":                   dropoutByMask,
		"Swish":                     swishFallback,
		"GlobalLpPool":              func(d *Downgrade, _ tensor.DType) bool { return globalLp(d) },
	} {
		all[name] = f
	}
	return all
}
