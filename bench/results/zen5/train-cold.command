tokmap-bench train --cold build/measure/tokmap-measure-1g
