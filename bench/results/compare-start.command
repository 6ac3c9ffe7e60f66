tokmap-bench compare start build/measure/tokmap-measure-1g
