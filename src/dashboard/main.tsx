import { render } from 'preact';
import 'uplot/dist/uPlot.min.css';
import './style.css';
import { App } from './app.js';
import { watchKeyboard } from './keyboard.js';
import { watchRoute } from './router.js';
import { applyTheme } from './theme.js';

const root = document.getElementById('app');
applyTheme();
watchRoute();
watchKeyboard();
if (root !== null) render(<App />, root);
