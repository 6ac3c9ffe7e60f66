tokmap-bench compare overlap build/measure/tokmap-measure-1g
