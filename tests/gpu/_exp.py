import sys; sys.path[:0]=['.','tests/gpu']
import handmade, torch, time, ctypes, gc
k=handmade.add(); a=torch.randn(1024,device='cuda'); b=a.clone(); k(a,b)
L=k.launcher; args=(a,b)
gc.disable()
def T(name,f,n=300):
    f(); torch.cuda.synchronize(); r=[]
    for _ in range(15):
        t=time.perf_counter()
        for _ in range(n): f()
        r.append((time.perf_counter()-t)/n*1e6); torch.cuda.synchronize()
    print(name, round(sorted(r)[7],2), round(min(r),2))
plan=L._plans[L._key(args)]; rec=next(iter(plan._records.values()))
head,params=rec.launches[0]
dev=plan._where
T('nop',lambda:None)
T('empty kw',lambda:torch.empty((1024,),dtype=torch.float32,device=dev))
T('empty kw cuda str',lambda:torch.empty((1024,),dtype=torch.float32,device='cuda'))
T('empty_like',lambda:torch.empty_like(a))
T('new_empty',lambda:a.new_empty((1024,)))
T('empty cpu',lambda:torch.empty((1024,),dtype=torch.float32))
E=torch._C._dynamo.guards._empty_strided_cuda
T('_empty_strided_cuda',lambda:E((1024,),(1,),torch.float32))
keep=[torch.empty((1024,),device=dev) for _ in range(10)]
def hold(L=[]):
    L.append(E((1024,),(1,),torch.float32))
    if len(L)>200: L.clear()
T('hold',hold)
drv=k.launcher._loaded[(0,True)].driver
f=drv.launch; vp=ctypes.c_void_p; st=vp(0)
T('cuLaunchKernel ctypes',lambda:f(*head,st,params,None))
ab=ctypes.CDLL(None)['abs']
T('ctypes nop 11 args',lambda:ab(*head,st,params,None))
py=ctypes.PyDLL('libcuda.so.1')['cuLaunchKernel']
T('cuLaunchKernel PyDLL',lambda:py(*head,st,params,None))
cc=drv._library['cuCtxGetCurrent']; x=vp(); rx=ctypes.byref(x)
T('cuCtxGetCurrent',lambda:cc(rx))
T('a.add_(1)',lambda:a.add_(1))
T('torch._foreach nop a.data_ptr',lambda:a.data_ptr())
s2=torch.cuda.Stream(); s2v=vp(s2.cuda_stream)
T('launch on side stream',lambda:f(*head,s2v,params,None))
try:
    from cuda.bindings import driver as cd
    import numpy as np
    h=head[0].value; pv=params.value
    T('cuda.bindings',lambda:cd.cuLaunchKernel(h,*head[1:],0,pv,0))
except Exception as e: print(e)
g=ctypes.CDLL('libcudart.so.13') if False else None
T('plan.run',lambda:plan.run(args)); T('call',lambda:L(args))
