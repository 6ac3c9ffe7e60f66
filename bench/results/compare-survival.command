tokmap-bench compare survival build/measure/tokmap-measure-1g
