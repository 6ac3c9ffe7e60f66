tokmap-bench compare progressive build/measure/tokmap-measure-1g
