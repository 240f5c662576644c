package aten

import (
	"math"
	"math/cmplx"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// fourier holds the Fourier transforms (ATen/native/SpectralOps.cpp).
var fourier = Defs{
	"aten::fft_fft":       {Doc: "discrete Fourier transform along dim", Autocast: Float32OnCPU, TakesComplex: true, Lower: func(l *Lowering) *ssa.Value { return l.fft1(false) }},
	"aten::fft_ifft":      {Doc: "inverse Fourier transform along dim", Autocast: Float32OnCPU, TakesComplex: true, Lower: func(l *Lowering) *ssa.Value { return l.fft1(true) }},
	"aten::fft_fft2":      {Doc: "Fourier transform along two axes", Autocast: Float32OnCPU, TakesComplex: true, Lower: func(l *Lowering) *ssa.Value { return l.fftN(false) }},
	"aten::fft_ifft2":     {Doc: "inverse Fourier transform along two axes", Autocast: Float32OnCPU, TakesComplex: true, Lower: func(l *Lowering) *ssa.Value { return l.fftN(true) }},
	"aten::fft_fftn":      {Doc: "Fourier transform along axes", Autocast: Float32OnCPU, TakesComplex: true, Lower: func(l *Lowering) *ssa.Value { return l.fftN(false) }},
	"aten::fft_ifftn":     {Doc: "inverse Fourier transform along axes", Autocast: Float32OnCPU, TakesComplex: true, Lower: func(l *Lowering) *ssa.Value { return l.fftN(true) }},
	"aten::fft_rfft":      {Doc: "first half of the Fourier transform of real numbers", Autocast: Float32OnCPU, TakesComplex: true, Lower: func(l *Lowering) *ssa.Value { return l.rfft(false) }},
	"aten::fft_rfft2":     {Doc: "half of the Fourier transform of real numbers along axes", Autocast: Float32OnCPU, TakesComplex: true, Lower: func(l *Lowering) *ssa.Value { return l.rfft(false) }},
	"aten::fft_rfftn":     {Doc: "half of the Fourier transform of real numbers along axes", Autocast: Float32OnCPU, TakesComplex: true, Lower: func(l *Lowering) *ssa.Value { return l.rfft(false) }},
	"aten::fft_ihfft":     {Doc: "conjugate of the inverse transform of real numbers", Autocast: Float32OnCPU, TakesComplex: true, Lower: func(l *Lowering) *ssa.Value { return l.rfft(true) }},
	"aten::fft_ihfft2":    {Doc: "conjugate of the inverse transform of real numbers along axes", TakesComplex: true, Lower: func(l *Lowering) *ssa.Value { return l.rfft(true) }},
	"aten::fft_ihfftn":    {Doc: "conjugate of the inverse transform of real numbers along axes", TakesComplex: true, Lower: func(l *Lowering) *ssa.Value { return l.rfft(true) }},
	"aten::fft_irfft":     {Doc: "inverse of rfft", Autocast: Float32OnCPU, TakesComplex: true, Lower: func(l *Lowering) *ssa.Value { return l.irfft(false) }},
	"aten::fft_irfft2":    {Doc: "inverse of rfft2", Autocast: Float32OnCPU, TakesComplex: true, Lower: func(l *Lowering) *ssa.Value { return l.irfft(false) }},
	"aten::fft_irfftn":    {Doc: "inverse of rfftn", Autocast: Float32OnCPU, TakesComplex: true, Lower: func(l *Lowering) *ssa.Value { return l.irfft(false) }},
	"aten::fft_hfft":      {Doc: "Fourier transform of a half Hermitian input", Autocast: Float32OnCPU, TakesComplex: true, Lower: func(l *Lowering) *ssa.Value { return l.irfft(true) }},
	"aten::fft_hfft2":     {Doc: "Fourier transform of a half Hermitian input along axes", TakesComplex: true, Lower: func(l *Lowering) *ssa.Value { return l.irfft(true) }},
	"aten::fft_hfftn":     {Doc: "Fourier transform of a half Hermitian input along axes", TakesComplex: true, Lower: func(l *Lowering) *ssa.Value { return l.irfft(true) }},
	"aten::fft_fftshift":  {Doc: "axes rolled by half their size", Nature: Moves, Lower: func(l *Lowering) *ssa.Value { return l.fftShift(false) }},
	"aten::fft_ifftshift": {Doc: "axes rolled back by half their size", Nature: Moves, Lower: func(l *Lowering) *ssa.Value { return l.fftShift(true) }},
	"aten::fft_fftfreq":   {Doc: "frequencies of fft", TakesComplex: true, Lower: func(l *Lowering) *ssa.Value { return l.fftFreq(false) }},
	"aten::fft_rfftfreq":  {Doc: "frequencies of rfft", TakesComplex: true, Lower: func(l *Lowering) *ssa.Value { return l.fftFreq(true) }},
	"aten::_fft_c2c":      {Doc: "Fourier transform along axes, with a factor by number", TakesComplex: true, Lower: lowerFFTc2c},
	"aten::_fft_r2c":      {Doc: "Fourier transform of real numbers along axes, all or half of it", TakesComplex: true, Lower: lowerFFTr2c},
	"aten::_fft_c2r":      {Doc: "inverse transform of half a Hermitian spectrum", TakesComplex: true, Lower: lowerFFTc2r},
	"aten::stft":          {Doc: "Fourier transforms of windows of a signal", Layout: AnyLayout, Autocast: Float32OnCPU, TakesComplex: true, Lower: lowerSTFT},
	"aten::istft":         {Doc: "the signal of which stft gives the windows' transforms", TakesComplex: true, Lower: lowerISTFT},
}

// spectrum is a complex tensor in parts; im is nil for a real one.
type spectrum struct{ re, im *ssa.Value }

func (l *Lowering) spectrumArg() spectrum {
	re, im := l.parts(l.Tensor("self"))
	if d := l.DType(re); !d.IsFloat() {
		re = l.Cast(re, tensor.Float32)
	} else if d.Size() < 4 {
		l.Fail("Fourier transforms of half precision")
	}
	return spectrum{re, im}
}

func (l *Lowering) both(s spectrum, f func(v *ssa.Value) *ssa.Value) spectrum {
	s.re = f(s.re)
	if s.im != nil {
		s.im = f(s.im)
	}
	return s
}

// value is the complex tensor.
func (l *Lowering) spectrumValue(s spectrum) *ssa.Value {
	if s.im == nil {
		s.im = l.fill(l.shapeOf(s.re), l.DType(s.re), ssa.Int(0))
	}
	return l.Pair(s.re, s.im)
}

// resizeAxisTo cuts or pads with zeros at the end.
func (l *Lowering) resizeAxisTo(x *ssa.Value, axis int, n Size) *ssa.Value {
	have := l.sizeOf(x, axis)
	if n.Known && have.Expr.Equal(n.Expr) {
		return x
	}
	a, okA := have.Int()
	b, okB := n.Int()
	if !okA || !okB || b > a {
		pads := make([]Size, 2*l.Rank(x))
		for i := range pads {
			pads[i] = ConstSize(0)
		}
		pads[l.Rank(x)+axis] = l.maxSize(l.subSize(n, have), ConstSize(0))
		x = l.Pad(x, l.sizeTensor(pads), l.Like(x, 0), nil)
		if okA && okB {
			return x
		}
	}
	return l.Slice(x, l.i64(0), l.sizeTensor([]Size{n}), l.i64(int64(axis)), nil)
}

// fftArgs reads the axes and their sizes; size is not Known and without Value where the input decides.
func (l *Lowering) fftArgs(rank int) (dims []int, sizes []*Size) {
	if l.HasArg("n") {
		dims = []int{l.Dim("dim", rank)}
		sizes = []*Size{nil}
		if !l.IsNone("n") {
			n := l.sizes("n")[0]
			sizes[0] = &n
		}
		return dims, sizes
	}
	var given []Size
	if !l.IsNone("s") {
		given = l.sizes("s")
	}
	switch {
	case !l.IsNone("dim"):
		for _, d := range l.Ints("dim") {
			dims = append(dims, l.wrap(d, rank))
		}
	case given != nil:
		for i := range given {
			dims = append(dims, rank-len(given)+i)
		}
	default:
		for i := range rank {
			dims = append(dims, i)
		}
	}
	if given != nil && len(given) != len(dims) {
		l.Fail("%d sizes for %d dimensions", len(given), len(dims))
	}
	sizes = make([]*Size, len(dims))
	for i := range given {
		if n, ok := given[i].Int(); !ok || n != -1 {
			sizes[i] = &given[i]
		}
	}
	return dims, sizes
}

// fftScale is the factor of a transform of n numbers: norm says which direction carries 1/n.
func (l *Lowering) fftScale(inverse bool, n Size, d tensor.DType) *ssa.Value {
	power := 0.0
	if l.HasArg("normalization") { // the primitive forms: none, 1/sqrt(n), 1/n
		power = -0.5 * float64(l.Int("normalization"))
		return l.sizePower(n, power, d)
	}
	switch norm := l.Str("norm"); norm {
	case "", "backward":
		if inverse {
			power = -1
		}
	case "forward":
		if !inverse {
			power = -1
		}
	case "ortho":
		power = -0.5
	default:
		l.Fail("unknown norm %q", norm)
	}
	return l.sizePower(n, power, d)
}

// sizePower is n to the power 0 (nil), -0.5 or -1.
func (l *Lowering) sizePower(n Size, power float64, d tensor.DType) *ssa.Value {
	if power == 0 {
		return nil
	}
	if k, ok := n.Int(); ok {
		return l.Scalar(d, math.Pow(float64(k), power))
	}
	v := l.Cast(l.sizeValue(n), d)
	if power == -0.5 {
		v = l.Sqrt(v)
	}
	return l.Reciprocal(v)
}

func (l *Lowering) scaled(s spectrum, k *ssa.Value) spectrum {
	if k == nil {
		return s
	}
	return l.both(s, func(v *ssa.Value) *ssa.Value { return l.Mul(v, k) })
}

// dft transforms along an axis without a factor: exp(-2 pi i j k / n), with a plus for the inverse.
func (l *Lowering) dft(s spectrum, axis int, inverse bool) spectrum {
	r := l.Rank(s.re)
	d := l.DType(s.re)
	n := l.sizeOf(s.re, axis)
	// A product is exact to the last bits; onnxruntime's DFT loses three digits where the size is no power of 2.
	// Before opset 17 there is no DFT, and the product is the only way.
	if k, ok := n.Int(); ok && (k <= 32 || k&(k-1) != 0 && k <= 512 || l.Opset < 17) {
		return l.dftByMatrix(s, axis, k, inverse)
	} else if ok && k&(k-1) != 0 && k <= maxChirp {
		return l.dftByChirp(s, axis, k, inverse)
	}
	l.NeedOpset(17, "a Fourier transform of unknown size")
	if k, ok := n.Int(); !ok || k&(k-1) != 0 {
		l.assume("three digits of a Fourier transform suffice", "onnxruntime's DFT loses the others where the size is no power of 2; a size in --input has all of them")
	}
	x := l.unsqueeze(s.re, int64(r))
	if s.im != nil {
		x = l.concatV(int64(r), x, l.unsqueeze(s.im, int64(r)))
	}
	// An inverse transform is the forward one with the parts exchanged.
	if inverse {
		im := s.im
		if im == nil {
			im = l.fill(l.shapeOf(s.re), d, ssa.Int(0))
		}
		x = l.concatV(int64(r), l.unsqueeze(im, int64(r)), l.unsqueeze(s.re, int64(r)))
	}
	y := l.DFT(x, nil, l.scalarInt(tensor.Int64, int64(axis)))
	at := func(i int64) *ssa.Value { return l.gather(y, l.scalarInt(tensor.Int64, i), r) }
	if inverse {
		return spectrum{at(1), at(0)}
	}
	return spectrum{at(0), at(1)}
}

// maxChirp bounds the size of a transform whose factors are in the model: they take up to 64 bytes for each number.
const maxChirp = 1 << 20

// dftByChirp transforms n numbers as a convolution, by transforms of a power of 2 (L. Bluestein, A linear filtering
// approach to the computation of discrete Fourier transform, 1970): jk is (j² + k² - (k-j)²) / 2, so that the result is
// chirp(k) times the sum of x(j) chirp(j) / chirp(k-j), where chirp(j) is exp(-pi i j² / n).
func (l *Lowering) dftByChirp(s spectrum, axis int, n int64, inverse bool) spectrum {
	m := int64(1)
	for m < 2*n-1 {
		m *= 2
	}
	sign := -1.0
	if inverse {
		sign = 1
	}
	chirp, filter := make([]complex128, n), make([]complex128, m)
	for j := range n {
		chirp[j] = cmplx.Rect(1, sign*math.Pi*float64(j*j%(2*n))/float64(n))
		filter[j] = cmplx.Conj(chirp[j]) / complex(float64(m), 0) // the inverse transform has no factor
		filter[(m-j)%m] = filter[j]
	}
	d, r := l.DType(s.re), l.Rank(s.re)
	constant := func(of []complex128) spectrum {
		shape := append([]int64{int64(len(of))}, repeatInt(1, r-1-axis)...)
		re, im := make([]float64, len(of)), make([]float64, len(of))
		for i, c := range of {
			re[i], im[i] = real(c), imag(c)
		}
		return spectrum{l.Const(tensor.FromFloats(d, shape, re)), l.Const(tensor.FromFloats(d, shape, im))}
	}
	resize := func(a spectrum, size int64) spectrum {
		return l.both(a, func(v *ssa.Value) *ssa.Value { return l.resizeAxisTo(v, axis, ConstSize(size)) })
	}
	c := constant(chirp)
	a := l.dft(resize(l.timesSpectrum(s, c), m), axis, false)
	y := l.dft(l.timesSpectrum(a, constant(radix2(filter))), axis, true)
	return l.timesSpectrum(resize(y, n), c)
}

// radix2 is the transform of as many numbers as a power of 2 (Cooley and Tukey, 1965).
func radix2(x []complex128) []complex128 {
	n := len(x)
	if n == 1 {
		return x
	}
	even, odd := make([]complex128, n/2), make([]complex128, n/2)
	for i := range even {
		even[i], odd[i] = x[2*i], x[2*i+1]
	}
	even, odd = radix2(even), radix2(odd)
	out := make([]complex128, n)
	for k, e := range even {
		t := odd[k] * cmplx.Rect(1, -2*math.Pi*float64(k)/float64(n))
		out[k], out[k+n/2] = e+t, e-t
	}
	return out
}

// dftByMatrix multiplies with the cosines and sines.
func (l *Lowering) dftByMatrix(s spectrum, axis int, n int64, inverse bool) spectrum {
	if n > 4096 {
		l.Fail("a Fourier transform of size %d below opset 17", n)
	}
	d := l.DType(s.re)
	c, w := make([]float64, n*n), make([]float64, n*n)
	for j := range n {
		for k := range n {
			a := 2 * math.Pi * float64(j*k%n) / float64(n)
			c[j*n+k], w[j*n+k] = math.Cos(a), -math.Sin(a)
			if inverse {
				w[j*n+k] = math.Sin(a)
			}
		}
	}
	cos := l.Const(tensor.FromFloats(d, []int64{n, n}, c))
	sin := l.Const(tensor.FromFloats(d, []int64{n, n}, w))
	mul := func(v, m *ssa.Value) *ssa.Value { return l.alongAxis(v, m, axis) }
	if s.im == nil {
		return spectrum{mul(s.re, cos), mul(s.re, sin)}
	}
	return spectrum{l.Sub(mul(s.re, cos), mul(s.im, sin)), l.Add(mul(s.re, sin), mul(s.im, cos))}
}

// fftDims are the axes of the primitive forms.
func (l *Lowering) fftDims(s spectrum) []int {
	var dims []int
	for _, d := range l.Ints("dim") {
		dims = append(dims, l.wrap(d, l.Rank(s.re)))
	}
	return dims
}

func lowerFFTc2c(l *Lowering) *ssa.Value {
	s := l.spectrumArg()
	dims := l.fftDims(s)
	return l.spectrumValue(l.fftOver(s, dims, make([]*Size, len(dims)), !l.Bool("forward")))
}

func lowerFFTr2c(l *Lowering) *ssa.Value {
	s := l.spectrumArg()
	dims := l.fftDims(s)
	if s.im != nil || len(dims) == 0 {
		l.Fail("a transform of real numbers of a complex tensor, or along no axis")
	}
	last := dims[len(dims)-1]
	half := l.addSize(l.divSize(l.sizeOf(s.re, last), ConstSize(2)), ConstSize(1))
	s = l.fftOver(s, dims, make([]*Size, len(dims)), false)
	if l.Bool("onesided") {
		s = l.both(s, func(v *ssa.Value) *ssa.Value { return l.resizeAxisTo(v, last, half) })
	}
	return l.spectrumValue(s)
}

func lowerFFTc2r(l *Lowering) *ssa.Value {
	s := l.spectrumArg()
	dims := l.fftDims(s)
	if len(dims) == 0 {
		l.Fail("a transform along no axis")
	}
	k := len(dims) - 1
	s = l.fftOver(s, dims[:k], make([]*Size, k), true)
	n := l.sizes("last_dim_size")[0]
	return l.hermitianToReal(s, dims[k], n, false, l.fftScale(true, n, l.DType(s.re)))
}

func (l *Lowering) fft1(inverse bool) *ssa.Value {
	return l.fftN(inverse)
}

func (l *Lowering) fftN(inverse bool) *ssa.Value {
	s := l.spectrumArg()
	dims, sizes := l.fftArgs(l.Rank(s.re))
	return l.spectrumValue(l.fftOver(s, dims, sizes, inverse))
}

// fftOver transforms along several axes.
func (l *Lowering) fftOver(s spectrum, dims []int, sizes []*Size, inverse bool) spectrum {
	for i, d := range dims {
		if sizes[i] != nil {
			s = l.both(s, func(v *ssa.Value) *ssa.Value { return l.resizeAxisTo(v, d, *sizes[i]) })
		}
	}
	for _, d := range dims {
		n := l.sizeOf(s.re, d)
		s = l.scaled(l.dft(s, d, inverse), l.fftScale(inverse, n, l.DType(s.re)))
	}
	return s
}

// rfft gives the first n/2 + 1 frequencies along the last of the axes; with
// hermitian set, of the conjugate inverse transform.
func (l *Lowering) rfft(hermitian bool) *ssa.Value {
	s := l.spectrumArg()
	if s.im != nil {
		l.Fail("a transform of real numbers of a complex tensor")
	}
	dims, sizes := l.fftArgs(l.Rank(s.re))
	if len(dims) == 0 {
		l.Fail("a transform along no axis")
	}
	for i, d := range dims {
		if sizes[i] != nil {
			s.re = l.resizeAxisTo(s.re, d, *sizes[i])
		}
	}
	last := dims[len(dims)-1]
	n := l.sizeOf(s.re, last)
	half := l.addSize(l.divSize(n, ConstSize(2)), ConstSize(1))
	s = l.scaled(l.dft(s, last, hermitian), l.fftScale(hermitian, n, l.DType(s.re)))
	s = l.both(s, func(v *ssa.Value) *ssa.Value { return l.resizeAxisTo(v, last, half) })
	return l.spectrumValue(l.fftOver(s, dims[:len(dims)-1], make([]*Size, len(dims)-1), hermitian))
}

// irfft gives real numbers from the first half of a Hermitian spectrum along
// the last of the axes; with forward set, by the forward transform (hfft).
func (l *Lowering) irfft(forward bool) *ssa.Value {
	s := l.spectrumArg()
	dims, sizes := l.fftArgs(l.Rank(s.re))
	if len(dims) == 0 {
		l.Fail("a transform along no axis")
	}
	k := len(dims) - 1
	s = l.fftOver(s, dims[:k], sizes[:k], !forward)
	last := dims[k]
	var n Size
	if sizes[k] != nil {
		n = *sizes[k]
	} else {
		n = l.mulSize(ConstSize(2), l.subSize(l.sizeOf(s.re, last), ConstSize(1)))
	}
	if v, ok := n.Int(); ok && v < 1 {
		l.Fail("a transform of %d numbers", v)
	}
	return l.hermitianToReal(s, last, n, forward, l.fftScale(!forward, n, l.DType(s.re)))
}

// hermitianToReal is the transform of n numbers, the first half of which is given.
func (l *Lowering) hermitianToReal(s spectrum, axis int, n Size, forward bool, scale *ssa.Value) *ssa.Value {
	half := l.addSize(l.divSize(n, ConstSize(2)), ConstSize(1))
	s = l.both(s, func(v *ssa.Value) *ssa.Value { return l.resizeAxisTo(v, axis, half) })
	// place j > n/2 is the conjugate of place n-j
	at := l.countTo(n)
	mirrored := l.Min(at, l.Sub(l.sizeValue(n), at))
	re := l.gather(s.re, mirrored, axis)
	full := spectrum{re: re}
	if s.im != nil {
		tail := l.Less(l.Sub(l.sizeValue(n), at), at)
		sign := l.Where(tail, l.Like(re, -1), l.Like(re, 1))
		// a real transform does not see the imaginary parts of places 0 and n/2
		own := l.Equal(l.Mod(l.Add(at, at), l.sizeValue(n)), l.scalarInt(tensor.Int64, 0))
		sign = l.Where(own, l.Like(re, 0), sign)
		sign = l.unsqueeze(sign, axesFrom(1, l.Rank(re)-1-axis)...)
		full.im = l.Mul(l.gather(s.im, mirrored, axis), sign)
	}
	return l.scaled(spectrum{re: l.dft(full, axis, !forward).re}, scale).re
}

func (l *Lowering) fftShift(inverse bool) *ssa.Value {
	x := l.Tensor("self")
	r := l.Rank(x)
	dims := l.Dims("dim", r)
	if !l.IsNone("dim") && len(l.Ints("dim")) == 0 {
		dims = nil
	}
	for _, d := range dims {
		n := l.sizeOf(x, int(d))
		half := l.divSize(n, ConstSize(2))
		// rolling by k puts the last k first
		cut := l.subSize(n, half)
		if inverse {
			cut = half
		}
		at := l.sizeTensor([]Size{cut})
		axis := l.i64(d)
		end := l.i64(math.MaxInt64)
		x = l.concatV(d, l.Slice(x, at, end, axis, nil), l.Slice(x, l.i64(0), at, axis, nil))
	}
	return x
}

func (l *Lowering) fftFreq(half bool) *ssa.Value {
	size := l.sizeArg("n")
	t := l.DTypeArg("dtype")
	if t == tensor.Undefined {
		t = tensor.Float32
	}
	n, ok := size.Int()
	if t.IsFloat() && !(ok && l.IsConst("d")) {
		return l.Cast(l.fftFreqAtRun(size, half), t)
	}
	d := l.Float("d")
	if n < 1 || n > 1<<24 || !t.IsFloat() {
		l.Fail("fftfreq of %d numbers of %v", n, t)
	}
	count := n
	if half {
		count = n/2 + 1
	}
	v := make([]float64, count)
	for i := range v {
		k := float64(i)
		if !half && int64(i) >= (n+1)/2 {
			k -= float64(n)
		}
		v[i] = k / (float64(n) * d)
	}
	return l.Const(tensor.FromFloats(t, []int64{count}, v))
}

// fftFreqAtRun is fftFreq of a size or a spacing that is known when the model runs, in float64.
func (l *Lowering) fftFreqAtRun(n Size, half bool) *ssa.Value {
	number := func(s Size) *ssa.Value { return l.Cast(l.sizeValue(s), tensor.Float64) }
	count := n
	if half {
		count = l.addSize(l.divSize(n, ConstSize(2)), ConstSize(1))
	}
	k := l.Cast(l.countTo(count), tensor.Float64)
	if !half {
		positive := l.divSize(l.addSize(n, ConstSize(1)), ConstSize(2))
		k = l.Where(l.Less(k, number(positive)), k, l.Sub(k, number(n)))
	}
	return l.Div(k, l.Mul(number(n), l.as("d", tensor.Float64)))
}

// windowArg is the window, centered in n_fft places; its parts are nil if there is none of them to multiply with.
func (l *Lowering) windowArg(n, length int64, d tensor.DType) spectrum {
	w := l.TensorOr("window")
	if w == nil {
		if length == n {
			return spectrum{}
		}
		w = l.Const(tensor.Full(d, []int64{length}, 1))
	}
	re, im := l.parts(w)
	return l.both(spectrum{re, im}, func(v *ssa.Value) *ssa.Value {
		v = l.Cast(v, d)
		if length < n {
			left := (n - length) / 2
			v = l.Pad(v, l.i64(left, n-length-left), l.Like(v, 0), nil)
		}
		return v
	})
}

// timesSpectrum is the product of two complex tensors, of which b broadcasts to the shape of a.
func (l *Lowering) timesSpectrum(a, b spectrum) spectrum {
	switch {
	case b.im == nil:
		return l.both(a, func(v *ssa.Value) *ssa.Value { return l.Mul(v, b.re) })
	case a.im == nil:
		return spectrum{l.Mul(a.re, b.re), l.Mul(a.re, b.im)}
	}
	re, im := l.timesComplex(a.re, a.im, b.re, b.im)
	return spectrum{re, im}
}

// pairOfTransforms is the stft of both parts of a complex signal, in all frequencies.
func (l *Lowering) pairOfTransforms() *ssa.Value {
	if !l.IsNone("onesided") && l.Bool("onesided") {
		l.Fail("half of the spectrum of a complex signal")
	}
	if l.Node.Schema == nil {
		l.Fail("stft of a complex signal by places")
	}
	a, b := l.parts(l.Tensor("self"))
	of := func(part *ssa.Value) (re, im *ssa.Value) {
		s := l.Node.Schema
		return l.parts(l.Aten(s.Name+overloadSuffix(s), l.argumentsFor(s, part, map[string]any{"onesided": false, "return_complex": true})...))
	}
	ar, ai := of(a)
	br, bi := of(b)
	re, im := l.Sub(ar, bi), l.Add(ai, br)
	if l.Bool("return_complex") {
		return l.Pair(re, im)
	}
	r := int64(l.Rank(re))
	return l.concatV(r, l.unsqueeze(re, r), l.unsqueeze(im, r))
}

func lowerSTFT(l *Lowering) *ssa.Value {
	if isComplexValue(l.Arg("self")) { // transforms are linear; all frequencies are asked for
		return l.pairOfTransforms()
	}
	x := l.Tensor("self")
	d := l.DType(x)
	n := l.Int("n_fft")
	hop, length := l.IntOr("hop_length", n/4), l.IntOr("win_length", n)
	lone := l.Rank(x) == 1
	if lone {
		x = l.unsqueeze(x, 0)
	}
	if l.HasArg("center") && l.Bool("center") {
		mode := l.Str("pad_mode")
		half := n / 2
		switch mode {
		case "constant":
			x = l.Pad(x, l.i64(0, half, 0, half), l.Like(x, 0), nil)
		case "reflect":
			x = l.Pad(x, l.i64(0, half, 0, half), nil, nil, onnx.Mode("reflect"))
		case "replicate":
			x = l.Pad(x, l.i64(0, half, 0, half), nil, nil, onnx.Mode("edge"))
		default:
			l.Fail("stft with pad_mode %q", mode)
		}
	}
	if !l.IsNone("align_to_window") && l.Bool("align_to_window") {
		l.Fail("stft with align_to_window")
	}
	count := l.windowCount(l.sizeOf(x, 1), n, hop, 1, 0, 0, false)
	index := l.Add(l.unsqueeze(l.Mul(l.countTo(count), l.scalarInt(tensor.Int64, hop)), 1), l.i64(l.iotaInts(n)...))
	frames := l.gather(x, index, 1) // (B, frames, n)
	s := spectrum{re: frames}
	w := l.windowArg(n, length, d)
	if w.re != nil {
		s = l.timesSpectrum(s, w)
	}
	s = l.dft(s, 2, false)
	if l.IsNone("onesided") && w.im == nil || l.Bool("onesided") {
		s = l.both(s, func(v *ssa.Value) *ssa.Value { return l.sliceC(v, 2, 0, n/2+1, 1) })
	}
	s = l.both(s, func(v *ssa.Value) *ssa.Value {
		if l.Bool("normalized") {
			v = l.scale(v, 1/math.Sqrt(float64(n)))
		}
		v = l.transpose(v, 0, 2, 1)
		if lone {
			v = l.squeeze(v, 0)
		}
		return v
	})
	y := l.Pair(s.re, s.im)
	if l.Bool("return_complex") || l.IsNone("return_complex") && w.im != nil {
		return y
	}
	r := int64(l.Rank(s.re))
	return l.concatV(r, l.unsqueeze(s.re, r), l.unsqueeze(s.im, r))
}

func lowerISTFT(l *Lowering) *ssa.Value {
	whole := l.Bool("return_complex")
	re, im := l.parts(l.Tensor("self"))
	if im == nil {
		l.Fail("istft of a real tensor")
	}
	d := l.DType(re)
	n := l.Int("n_fft")
	hop, length := l.IntOr("hop_length", n/4), l.IntOr("win_length", n)
	lone := l.Rank(re) == 2
	s := l.both(spectrum{re, im}, func(v *ssa.Value) *ssa.Value {
		if lone {
			v = l.unsqueeze(v, 0)
		}
		return l.transpose(v, 0, 2, 1) // (B, frames, frequencies)
	})
	onesided := true
	if !l.IsNone("onesided") {
		onesided = l.Bool("onesided")
	} else if k, ok := l.Shape(s.re)[2].Int(); ok {
		onesided = k != n
	}
	factor := 1 / float64(n)
	if l.Bool("normalized") {
		factor = 1 / math.Sqrt(float64(n))
	}
	if whole && onesided {
		l.Fail("istft with a complex result, of half of the spectrum")
	}
	if !onesided && !whole { // the other frequencies are taken to be the conjugates of these, whatever they are
		s = l.both(s, func(v *ssa.Value) *ssa.Value { return l.sliceC(v, 2, 0, n/2+1, 1) })
	}
	var frames spectrum
	if whole {
		frames = l.scaled(l.dft(s, 2, true), l.Scalar(d, factor))
	} else {
		frames.re = l.hermitianToReal(s, 2, ConstSize(n), false, l.Scalar(d, factor))
	}
	window := l.windowArg(n, length, d)
	if window.re == nil {
		window.re = l.Const(tensor.Full(d, []int64{n}, 1))
	}
	if window.im != nil && !whole {
		l.Fail("istft with a complex window and a real result")
	}
	frames = l.timesSpectrum(frames, window)
	count := l.sizeOf(frames.re, 1)
	total := l.addSize(l.mulSize(l.subSize(count, ConstSize(1)), ConstSize(hop)), ConstSize(n))
	overlap := func(f *ssa.Value) *ssa.Value { // (B, frames, n) to (B, total)
		cols := l.unsqueeze(l.transpose(f, 0, 2, 1), 1)
		y := l.scatterWindows(cols, []Size{total}, []Size{count}, []int64{n}, []int64{hop}, []int64{1})
		return l.squeeze(y, 1)
	}
	squares := l.both(l.timesSpectrum(window, window), func(v *ssa.Value) *ssa.Value {
		return l.Expand(v, l.sizeTensor([]Size{ConstSize(1), count, ConstSize(n)}))
	})
	start, end := ConstSize(0), total
	if l.Bool("center") {
		start, end = ConstSize(n/2), l.subSize(total, ConstSize(n/2))
	}
	if !l.IsNone("length") {
		end = l.addSize(start, l.sizes("length")[0])
	}
	cut := func(v *ssa.Value) *ssa.Value {
		return l.Slice(v, l.sizeTensor([]Size{start}), l.sizeTensor([]Size{end}), l.i64(1), nil)
	}
	y, envelope := l.both(l.both(frames, overlap), cut), l.both(l.both(squares, overlap), cut)
	if envelope.im == nil {
		y = l.both(y, func(v *ssa.Value) *ssa.Value { return l.Div(v, envelope.re) })
	} else { // by the conjugate of the envelope
		square := l.Add(l.Mul(envelope.re, envelope.re), l.Mul(envelope.im, envelope.im))
		y = l.timesSpectrum(y, spectrum{l.Div(envelope.re, square), l.Div(l.neg(envelope.im), square)})
	}
	y = l.both(y, func(v *ssa.Value) *ssa.Value {
		if !l.IsNone("length") {
			v = l.resizeAxisTo(v, 1, l.sizes("length")[0])
		}
		if lone {
			v = l.squeeze(v, 0)
		}
		return v
	})
	if whole {
		return l.Pair(y.re, y.im)
	}
	return y.re
}
