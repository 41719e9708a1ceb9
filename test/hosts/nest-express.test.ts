import { holdToLaws } from "./hosts.ts";
import { nestOn } from "./nest-hosts.ts";

holdToLaws(nestOn("express"));
