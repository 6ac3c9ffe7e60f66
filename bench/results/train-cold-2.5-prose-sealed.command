tokmap-bench train --cold --step-ms 2.5 build/measure/tokmap-measure-sealed
