tokmap-bench train --cold build/measure/tokmap-measure-prose
