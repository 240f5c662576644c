package kernel

import (
	"math"
	"sort"

	"github.com/aton-project/aton/ssa/tensor"
)

// detection finds the kernels of box selection and losses.
func detection(name string) kernel {
	switch name {
	case "NonMaxSuppression":
		return evalNMS
	}
	return nil
}

func evalNMS(c *call) []*tensor.Tensor {
	boxes, scores := c.t(0), c.t(1)
	if len(boxes.Shape) != 3 || len(scores.Shape) != 3 || boxes.Shape[2] != 4 || boxes.Shape[0] != scores.Shape[0] || boxes.Shape[1] != scores.Shape[2] {
		c.fail("boxes %v, scores %v", boxes.Shape, scores.Shape)
	}
	limit := c.scalar(2, 0)
	iou := c.fscalar(3, 0)
	threshold := math.Inf(-1)
	if c.t(4) != nil {
		threshold = c.fscalar(4, 0)
	}
	b, s := boxes.Float64s(), scores.Float64s()
	n, classes := boxes.Shape[1], scores.Shape[1]
	corners := func(i int64) (y0, x0, y1, x1 float64) {
		p := b[i*4 : i*4+4]
		if c.flag("center_point_box") {
			return p[1] - p[3]/2, p[0] - p[2]/2, p[1] + p[3]/2, p[0] + p[2]/2
		}
		return min(p[0], p[2]), min(p[1], p[3]), max(p[0], p[2]), max(p[1], p[3])
	}
	overlap := func(i, j int64) float64 {
		ay0, ax0, ay1, ax1 := corners(i)
		by0, bx0, by1, bx1 := corners(j)
		inter := max(0, min(ay1, by1)-max(ay0, by0)) * max(0, min(ax1, bx1)-max(ax0, bx0))
		union := (ay1-ay0)*(ax1-ax0) + (by1-by0)*(bx1-bx0) - inter
		if inter <= 0 || union <= 0 {
			return 0
		}
		return inter / union
	}
	out := []int64{}
	for batch := range boxes.Shape[0] {
		for class := range classes {
			row := s[(batch*classes+class)*n : (batch*classes+class+1)*n]
			var order []int64
			for i, v := range row {
				if v > threshold {
					order = append(order, int64(i))
				}
			}
			sort.SliceStable(order, func(i, j int) bool { return row[order[i]] > row[order[j]] })
			var kept []int64
		next:
			for _, i := range order {
				if int64(len(kept)) >= limit {
					break
				}
				for _, j := range kept {
					if overlap(batch*n+i, batch*n+j) > iou {
						continue next
					}
				}
				kept = append(kept, i)
				out = append(out, batch, class, i)
			}
		}
	}
	return one(tensor.Of(tensor.Int64, []int64{int64(len(out) / 3), 3}, out))
}
