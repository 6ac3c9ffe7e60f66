tokmap-bench compare epoch build/measure/tokmap-measure-1g
