tokmap-bench verify build/measure/tokmap-measure-sealed
