tokmap-bench compare item build/measure/tokmap-measure-1g
